#!/bin/bash
# mgc-run with checkpoints, on threads, in forked processes and under mpirun: stopped, killed, and
# gone on with.
set -o pipefail
source tools/commands/commands_test_lib.sh
source "$OLDPWD/tests/processes/processes_test_lib.sh"

make_text
base=(gpt2-tiny --seq-length 32 --world-size 4 --global-batch-size 8)
mgc-compile "${base[@]}" --tp 2 -o tp.plan >log
mgc-compile "${base[@]}" --pp 2 --zero 1 -o pp.plan >log
mgc-compile "${base[@]}" --bf16 -o bf16.plan >log
run=(--data text.txt --lr 1e-2 --json)

numbers() { cut -d, -f1-3; }
mgc-run tp.plan "${run[@]}" --steps 6 --dump-params whole.safetensors 2>stderr | numbers >whole

# Half, killed behind a save, the other half.
for way in threads forked-2 mpi-2; do
  dir=$way.saved
  launch $way tp.plan "${run[@]}" --lr-decay-steps 6 --steps 3 --save $dir 2>stderr | numbers >first
  # It dies in step 5.
  launch $way tp.plan "${run[@]}" --steps 6 --save $dir --inject kill:backward:0 >stdout 2>stderr
  launch $way tp.plan "${run[@]}" --steps 6 --save $dir --dump-params $way.safetensors 2>stderr |
    numbers >second
  cat first second | cmp - whole || fail "$way: not the run that was never stopped"
  cmp $way.safetensors whole.safetensors || fail "$way: other parameters"
  also 'goes on from step 3, sample 24'
  [[ $(cat $dir/latest) == step-00000006 ]] || fail "$way: latest is $(cat $dir/latest)"
  # All that is saved is the same, whoever saved it.
  diff -r -x lock $dir threads.saved || fail "$way: other files"
done

# Written while the next step computes, or while none does, or from a copy: the same.
for way in threads forked-2 mpi-2; do
  launch $way pp.plan "${run[@]}" --steps 5 --save behind-$way --save-interval 1 \
    --dump-params behind.safetensors >stdout 2>stderr
  also 'saved behind-'$way'/step-00000004 in '
  for how in wait copy; do
    launch $way pp.plan "${run[@]}" --steps 5 --save other --save-interval 1 --$how-for-saves \
      --dump-params other.safetensors >stdout 2>stderr
    diff -r -x lock behind-$way other || fail "$way: saves in the background are others ($how)"
    cmp behind.safetensors other.safetensors || fail "$way: so are parameters ($how)"
    rm -r other
  done
done

# Another plan, another type, more samples a step.
mgc-compile "${base[@]}" --global-batch-size 16 -o sixteen.plan >log 2>&1 ||
  mgc-compile gpt2-tiny --seq-length 32 --world-size 4 --global-batch-size 16 -o sixteen.plan >log
for plan in pp bf16 sixteen; do
  expect 0 'goes on from step 3, sample 24' mgc-run $plan.plan "${run[@]}" --steps 5 \
    --load threads.saved --resume 3 --save $plan.saved
  says '"step":4'
done
also 'option global-batch-size was 8, is 16'
grep -q '"samples": 56' sixteen.saved/step-00000005/manifest.json || fail 'samples are not counted'

# Nothing is left to do.
expect 0 'all 6 steps were done before' mgc-run tp.plan "${run[@]}" --steps 6 --save threads.saved
[[ -s stdout ]] && fail 'a step that was done is done again'
expect 0 '' mgc-run tp.plan "${run[@]}" --steps 1 --resume none

# How many stay, and what is made on the way.
expect 0 'saved kept/step-00000004' mgc-run tp.plan "${run[@]}" --steps 7 --save kept --keep 2 \
  --save-interval 2
[[ $(cd kept && echo step-*) == 'step-00000006 step-00000007' ]] || fail "kept: $(ls kept)"
expect 0 'saved timed/step-00000001' mgc-run tp.plan "${run[@]}" --steps 2 --save timed \
  --save-seconds 0.001

# Stopped: a checkpoint, and 75. Told by SIGTERM or SIGINT, mpirun reads no more of what processes
# print, which then wait, and kills them; SIGUSR1 it just hands on.
for way in threads forked-2 mpi-2; do
  for signal in TERM INT USR1; do
    [[ $way != mpi-* || $signal == USR1 ]] || continue
    : >stdout
    launch $way "$PWD/pp.plan" "${run[@]}" --steps 100000 --save stop-$way-$signal >stdout \
      2>stderr &
    for ((i = 0; i < 500; ++i)); do
      [[ -s stdout ]] && break
      sleep 0.02
    done
    kill -$signal "$(pgrep -of "mgc-run .*$PWD/pp.plan .*stop-$way-$signal")"
    rc=0
    wait $! || rc=$?
    ((rc == 75)) || fail "$way: exit code $rc after SIG$signal: $(cat stderr)"
    step=$(sed -n 's/^mgc-run: stopped after step //p' stderr)
    [[ $(cat stop-$way-$signal/latest) == "$(printf 'step-%08d' "$step")" ]] ||
      fail "$way: stopped after step $step, saved $(cat stop-$way-$signal/latest)"
  done
done

# Two runs in one folder; a folder that cannot be written; a loss that is not finite.
mgc-run pp.plan "${run[@]}" --steps 100000 --save both >stdout.first 2>stderr.first &
for ((i = 0; i < 500; ++i)); do
  [[ -s stdout.first ]] && break
  sleep 0.02
done
expect 1 'another run does (process' mgc-run pp.plan "${run[@]}" --steps 2 --save both
kill -KILL $!
wait $! 2>/dev/null
expect 0 'both' mgc-run pp.plan "${run[@]}" --steps 1 --save both
touch file
expect 1 'cannot write file' mgc-run pp.plan "${run[@]}" --steps 1 --save file
# Blocks of 1 KiB: too few for a file of parameters.
expect 1 'no checkpoint of step 8' bash -c 'ulimit -f 100; trap "" XFSZ; exec "$@"' sh \
  mgc-run tp.plan "${run[@]}" --steps 8 --save kept
[[ $(cat kept/latest) == step-00000007 && $(cd kept && echo step-*) == *06\ step-00000007 ]] ||
  fail "behind a full disk: $(ls kept)"
# A disk for two checkpoints, and one that may only be read.
small_disk() {
  expect 1 'No space left on device' mgc-run tp.plan "${run[@]}" --steps 6 --save disk/run \
    --save-interval 1
  also 'no checkpoint of step 3'
  [[ $(ls disk/run) == $'latest\nlock\nstep-00000001\nstep-00000002' ]] || fail "left: $(ls disk/run)"
  expect 0 '' mgc-ckpt verify disk/run
  mount -o remount,ro disk
  expect 1 'Read-only file system' mgc-run tp.plan "${run[@]}" --steps 6 --save disk/run
  expect 0 'goes on from step 2' mgc-run pp.plan "${run[@]}" --steps 3 --load disk/run --save read
}
mkdir disk
if mount -t tmpfs -o size=6m none disk; then
  small_disk
  umount disk
else
  echo 'full and read-only disks are left out: none can be mounted here'
fi
expect 1 'is NaN' mgc-run tp.plan --data text.txt --lr 1e6 --clip-grad 0 --steps 50 --save kept \
  --save-interval 1 --lr-decay-style constant
# What is kept is finite, however far it has gone astray.
finite=$(cat kept/latest)
mgc-run tp.plan "${run[@]}" --save kept --steps $((10#${finite#step-} + 1)) >stdout 2>stderr
also "goes on from step $((10#${finite#step-}))"

# What does not go together.
refuse 2 '--save-interval is given, and nowhere to save' mgc-run tp.plan "${run[@]}" --steps 1 \
  --save-interval 2 --keep 3 --wait-for-saves --copy-for-saves --resume latest
also '--keep is given, and nowhere to save'
also '--wait-for-saves is given, and nowhere to save'
also '--copy-for-saves is given, and nowhere to save'
also '--wait-for-saves and --copy-for-saves are both given'
also '--resume latest is given, and no folder of checkpoints'
refuse 2 '--resume first is neither' mgc-run tp.plan "${run[@]}" --steps 1 --save kept --resume first
refuse 1 'there is no checkpoint in none' mgc-run tp.plan "${run[@]}" --steps 1 --load none
refuse 1 'there is no checkpoint of step 9 in threads.saved' mgc-run tp.plan "${run[@]}" --steps 1 \
  --load threads.saved --resume 9
finish
