#!/bin/bash
# How runs in several processes begin and end: what is refused, by whom, and what signals do.
source tools/commands/commands_test_lib.sh
source "$OLDPWD/tests/processes/processes_test_lib.sh"
make_text
mgc-compile llama-tiny --tp 2 --pp 2 --world-size 4 --global-batch-size 8 -o p.plan || fail 'no plan'
mgc-compile llama-tiny --pp 4 --world-size 4 --global-batch-size 8 -o q.plan || fail 'no plan'
run=(--data text.txt --steps 2)

refuse 3 'a plan of 4 ranks cannot run in 5 processes; nearest legal: 4' \
  mgc-run --nproc 5 p.plan "${run[@]}"
refuse 3 'with 3 ranks a process needs 2 processes, not 4' \
  mgc-run --nproc 4 --ranks-per-process 3 p.plan "${run[@]}"
refuse 2 'must be between 1 and' mgc-run --nproc 0 p.plan "${run[@]}"
refuse 2 'no failure `burn:start:0`' mgc-run p.plan "${run[@]}" --inject burn:start:0
refuse 4 'missing.txt' mgc-run --nproc 2 p.plan --data missing.txt --steps 1
[[ $(grep -c '^error' stderr) == 1 ]] || fail 'an error of all processes is said more than once'
# Of a process that fails by itself the timeline has its own ranks: nobody else comes to give theirs.
for way in forked-2 mpi-2; do
  rm -f failed.json
  expect 1 'a failure that was asked for' launch $way p.plan "${run[@]}" --watchdog-seconds 20 \
    --inject throw:backward:2 --trace failed.json
  grep -q 'rank 2 (tp' failed.json || fail "$way: no timeline of a process that has failed"
done
# Memory that processes share is a file without a name, which may not grow here.
expect 1 'File too large' bash -c 'ulimit -f 100; exec "$@"' sh mgc-run --nproc 2 p.plan "${run[@]}"
expect 0 '' mgc-run --ranks-per-process 2 p.plan "${run[@]}"
says 'step 2 | loss'
[[ $(wc -l <stdout) == 2 ]] || fail 'a line of a step is printed by more than one process'
head -c 9000 text.txt >piece.txt
mgc-run --nproc 2 p.plan --data - --steps 1 <piece.txt >stdin.out 2>stderr || fail 'no data on stdin'

# Processes that mpirun starts must run the same, and say what is not.
mpi() { mpirun --oversubscribe "$@"; }
expect 3 'a plan of 4 ranks cannot run in 5 processes' mpi -n 5 mgc-run p.plan "${run[@]}"
expect 3 'processes 0 and 1 have different options' mpi -n 1 mgc-run p.plan "${run[@]}" : \
  -n 1 mgc-run p.plan "${run[@]}" --seed 7
mkdir -p one two
cp p.plan one/x.plan
cp q.plan two/x.plan
expect 3 'processes 0 and 1 have different plans' mpi -n 1 -wdir "$PWD/one" mgc-run x.plan \
  --data "$PWD/text.txt" --steps 1 : -n 1 -wdir "$PWD/two" mgc-run x.plan --data "$PWD/text.txt" \
  --steps 1
cp text.txt one/d.txt
cp piece.txt two/d.txt
expect 3 'different contents of d.txt' mpi -n 1 -wdir "$PWD/one" mgc-run ../p.plan --data d.txt \
  --steps 1 : -n 1 -wdir "$PWD/two" mgc-run ../p.plan --data d.txt --steps 1
expect 2 'unknown flag --bogus' mpi -n 2 mgc-run p.plan --bogus
[[ $(grep -c 'unknown flag' stderr) == 1 ]] || fail 'an error of all processes is said more than once'
expect 4 'stdin' mpi -n 2 mgc-run p.plan --data - --steps 1
expect 2 '--nproc starts processes of its own' mpi -n 2 mgc-run --nproc 2 p.plan "${run[@]}"
# One of many that each take themselves for all: another MPI's processes.
expect 1 'not of one MPI' env PMI_RANK=0 PMI_SIZE=2 mgc-run p.plan "${run[@]}"
also 'srun --mpi=pmix'

# A request to stop, at a step that all agree on; a second one at once. Steps are long: mpirun reads
# nothing for a second before it passes the request on, and a process that cannot write waits.
mgc-compile llama-tiny --tp 2 --pp 2 --world-size 4 --global-batch-size 128 -o long.plan ||
  fail 'no plan of long steps'
for way in threads forked-2 mpi-2; do
  : >stdout
  launch $way "$PWD/long.plan" --data text.txt --steps 100000 --json >stdout 2>stderr &
  for ((i = 0; i < 500; ++i)); do
    [[ -s stdout ]] && break
    sleep 0.02
  done
  pid=$(pgrep -of "mgc-run .*$PWD/long.plan .*--steps 100000")
  kill -USR2 "$pid"
  sleep 0.3
  kill -TERM "$pid"
  rc=0
  wait $! || rc=$?
  ((rc == 1)) || fail "$way: exit code $rc after SIGTERM"
  [[ $way == mpi-* ]] || also 'SIGTERM: stops after this step'
  stops=$(grep -cE '^mgc-run: stopped after step [0-9]+, nothing saved' stderr)
  ((stops == 1)) || fail "$way: $stops times stopped: $(cat stderr)"
  grep -qE 'has died|was killed' stderr && fail "$way: a death after SIGTERM"
  grep -qE 'mgc-run:   rank 3, step [0-9]+: ' stderr || fail "$way: no table after SIGUSR2"
done

# What a run leaves for people.
expect 0 '' mgc-run --nproc 2 --run-dir left p.plan "${run[@]}"
[[ -e left/logs/process-0001.log && -e left/plan && -e left/board ]] || fail 'no files of the run'
expect 0 '' mgc-status left
says 'rank 3, step 2: has been between steps'
says 'has ended'
expect 0 '' mgc-status --json left
says '"rank": 3'
refuse 4 'left/none/board' mgc-status left/none
head -c 100 left/board >short && cp -r left cut && cp short cut/board
refuse 4 'is not the board of a run' mgc-status cut

# What the first process has to say is on the terminal, whichever way it runs; the others have logs.
for way in threads forked-2 mpi-2; do
  expect 0 '' launch $way p.plan "${run[@]}" --metrics kept.jsonl --run-dir heard-$way
  expect 0 'an earlier run are kept as' launch $way p.plan "${run[@]}" --metrics kept.jsonl \
    --run-dir heard-$way
  [[ -e heard-$way/board && ! -e heard-$way/logs/process-0000.log ]] || fail "$way: a log"
  [[ $way == threads || -e heard-$way/logs/process-0001.log ]] || fail "$way: no log"
  rm kept.jsonl*
done

# Processes with unlike processors use kernels of the best instruction set that all have.
levels=()
for level in baseline avx2 avx512 avx512-bf16; do
  if mgc-run --check --instruction-set $level p.plan >stdout 2>stderr; then
    levels+=("$level")
  else
    refuse 3 '[I1]; nearest legal: baseline' mgc-run --check --instruction-set $level p.plan
  fi
done
refuse 2 'nearest legal: baseline, avx2, avx512, avx512-bf16' mgc-run p.plan "${run[@]}" \
  --instruction-set sse4
# bits COMMAND...: leaves losses and norms in `bits` and parameters in `params`.
bits() {
  rm -f params
  "$@" >stdout 2>stderr || { fail "exit code $?: $*"; cat stderr >&2; }
  grep -o '"step":[0-9]*,"loss":[^,]*,"grad_norm":[^,]*' stdout >bits
}
flags=(p.plan --data text.txt --steps 2 --lr 1e-2 --json --dump-params params)
if ((${#levels[@]} > 1)); then
  low=${levels[(${#levels[@]} - 1) / 2]}
  bits mgc-run "${flags[@]}"
  mv bits best.bits
  bits mgc-run "${flags[@]}" --instruction-set "$low"
  mv bits low.bits
  mv params low.params
  [[ $(wc -l <low.bits) == 2 ]] || fail 'not two steps'
  cmp -s best.bits low.bits && fail "kernels of $low are not others than the best"
  for way in forked-2 mpi-2; do
    bits launch $way "${flags[@]}" --instruction-set "$low"
    cmp bits low.bits && cmp params low.params || fail "$way: other bits with $low"
    [[ -s stderr ]] && fail "$way: $(cat stderr)"
  done
  for where in first second; do
    if [[ $where == first ]]; then
      bits mpi -n 1 mgc-run "${flags[@]}" --instruction-set "$low" : -n 1 mgc-run "${flags[@]}"
    else
      bits mpi -n 1 mgc-run "${flags[@]}" : -n 1 mgc-run "--instruction-set=$low" "${flags[@]}"
    fi
    also 'note: kernels are of '
    [[ $(grep -c 'kernels are of' stderr) == 1 ]] || fail 'the note of all processes more than once'
    cmp bits low.bits && cmp params low.params || fail "other bits with $low in the $where"
  done
fi
# The C library chooses for itself; what it gives must be the same.
if grep -qw fma /proc/cpuinfo; then
  tunables=GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable,-AVX2,-FMA
  expect 3 "different results of the C library's log, pow and cos" mpi -n 1 mgc-run p.plan \
    "${run[@]}" : -n 1 env $tunables mgc-run p.plan "${run[@]}"
fi

# Threads go by the processors that a process may use, and by how many processes share them.
cp p.plan affinity.plan
# threads COMMAND...: of one of the processes that train affinity.plan.
threads() {
  local pid
  rm -f running
  "$@" --data text.txt --steps 100000 >running 2>stderr </dev/null &
  until [[ -s running ]] || ! kill -0 $! 2>/dev/null; do sleep 0.02; done
  pid=$(pgrep -nf "^[^ ]*mgc-run $PWD/affinity.plan")
  ls "/proc/$pid/task" | wc -l
  pkill -KILL -f "mgc-run $PWD/affinity.plan"
  wait $! 2>/dev/null
}
run_it=(mgc-run "$PWD/affinity.plan")
read -ra processors <<<"$(taskset -pc $$ | sed 's/.*: //; s/,/ /g; s/-/ /g')"
alone=$(threads taskset -c "${processors[0]}" "${run_it[@]}")
one=$(threads "${run_it[@]}" --workers 1)
((one > 0 && alone == one)) || fail "$alone threads on one processor, $one with one worker"
if (($(nproc) > 1)); then
  two=$(threads taskset -c "${processors[0]},${processors[1]}" "${run_it[@]}")
  ((two == one + 1)) || fail "$two threads on two processors, $one with one worker"
  bound=$(threads mpi --bind-to core -n 2 "${run_it[@]}")
  one=$(threads mpi --bind-to core -n 2 "${run_it[@]}" --workers 1)
  ((one > 0 && bound == one)) || fail "mpirun --bind-to core: $bound threads, $one with one worker"
fi

# One file, one stdout, one timeline.
expect 0 '' mgc-run --nproc 2 p.plan "${run[@]}" --trace trace.json --metrics metrics.jsonl
[[ $(wc -l <metrics.jsonl) == 2 ]] || fail 'metrics of more than one process'
for rank in 0 1 2 3; do
  grep -q "rank $rank (tp" trace.json || fail "no rank $rank in the timeline"
done

# Sums of gradients begin beside backward, also where every worker computes.
mgc-compile gpt2-tiny --world-size 2 --global-batch-size 2 -o dp.plan || fail 'no plan'
expect 0 '' mgc-run --nproc 2 --workers 1 dp.plan "${run[@]}" --trace beside.json
awk 'function number(key) {
       match($0, "\"" key "\": [0-9.]+")
       return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0
     }
     number("pid") > 1 { next }
     /"name": "0B0", "cat": "action"/ && !end { end = number("ts") + number("dur") }
     /"cat": "collective"/ && (!begin || number("ts") < begin) { begin = number("ts") }
     END { print "first sum at", begin, "backward ends at", end; exit !(begin > 0 && begin < end) }' \
  beside.json || fail 'no sum begins before backward ends'

# A timeline has one clock, though hosts have their own: that of this one is 100,000 s ahead.
later=("${other_host[@]}" --time --monotonic 100000 --fork sh -c 'hostname later && exec "$@"' sh)
if why=$("${later[@]}" true 2>&1); then
  member=(mgc-run --workers 1 p.plan "${run[@]}" --trace clocks.json)
  expect 0 '' mpi --mca btl_vader_single_copy_mechanism none -n 1 "${member[@]}" : \
    -n 1 "${later[@]}" "${member[@]}"
  # Microseconds; a pipeline's stages take turns, and its steps end together.
  awk 'function number(key) {
         match($0, "\"" key "\": [0-9.]+")
         return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0
       }
       number("pid") > 4 { next }
       /"cat": "action"/ { end[number("pid")] = number("ts") + number("dur") }
       END {
         print "ends of the ranks of both hosts:", end[1], end[2], end[3], end[4]
         gap = end[3] - end[1]
         exit !(end[3] > 0 && gap < 1e6 && gap > -1e6)
       }' clocks.json || fail 'a timeline of two clocks'
else
  echo "no clocks of hosts here: ${why%%$'\n'*}"
fi
finish
