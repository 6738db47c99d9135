#!/bin/bash
# What fails is named, once, by everybody's launcher, and nothing hangs or stays behind. A row is how
# it is launched, the failure, the exit code, and what the report must say.
#   failures_test.sh        the rows that CI runs
#   failures_test.sh all    every failure at every point, launched in every way, and every file that
#                           finds no room
if [[ ${1:-} == all && ${2:-} != inside ]]; then
  # Disks of its own go with the processes.
  alone=(unshare --mount)
  ((EUID == 0)) || alone+=(--map-root-user)
  why=$("${alone[@]}" mount -t tmpfs none /mnt 2>&1) && exec "${alone[@]}" bash "$0" all inside
  echo "no disks of its own here, so none that is full: ${why%%$'\n'*}"
fi
source tools/commands/commands_test_lib.sh
source "$OLDPWD/tests/processes/processes_test_lib.sh"
make_text
mgc-compile llama-tiny --tp 2 --pp 2 --world-size 8 --sequence-parallel --micro-batch-size 2 \
  --global-batch-size 16 -o p.plan || fail 'no plan'
plan=$PWD/p.plan  # others may run the same test
watchdog=2  # seconds
[[ ${1:-} != all ]] || watchdog=3
steps=12

# count WAY FAULT: one more cell of that kind.
declare -A cells
count() { cells[$1 $2]=$((${cells[$1 $2]:-0} + 1)); }

# cell WAY FAULT:POINT:RANK CODES PATTERN: CODES are a regular expression too.
cell() {
  local way=$1 fault=$2 codes=$3 pattern=$4 rc=0 begin=$EPOCHREALTIME reports
  launch "$way" "$plan" --data text.txt --steps $steps --lr 1e-2 --watchdog-seconds $watchdog \
    --inject "$fault" >stdout 2>stderr || rc=$?
  local ms=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
  [[ $rc =~ ^($codes)$ ]] || fail "$way $fault: exit code $rc instead of $codes"
  # The first line says it, but for warnings.
  grep '^mgc-run: ' stderr | first_lines | grep -qE "$pattern" || {
    fail "$way $fault: no '$pattern' on the first line"
    head -5 stderr >&2
  }
  # One report: a first line of one, no matter how many lines follow.
  reports=$(grep -cE '^mgc-run: (rank [0-9]+ \(|process [0-9]+ \(.*(died|killed|ended|\): rank))' \
    stderr)
  ((fault_is_slow || reports <= 1 || reports_may_repeat)) || fail "$way $fault: $reports reports"
  # What launchers need to begin and to tear down is theirs; CI machines are slow. A rank that is
  # slow fails nothing and ends when it ends.
  ((fault_is_slow || ms < watchdog * 1000 + 6000)) || fail "$way $fault: took $ms ms"
  if pgrep -f "mgc-run .*$plan" >/dev/null; then
    sleep 1
    pgrep -af "mgc-run .*$plan" >&2 && fail "$way $fault: a process is left"
  fi
  count "$way" "${fault%%:*}"
  echo "$way $fault: $rc in $ms ms: $(grep -m1 '^mgc-run:' stderr | cut -c1-150)"
}
first_lines() {
  if ((fault_is_slow)); then cat; else grep -v '^mgc-run: warning' | head -1; fi
}
fault_is_slow=0
# The table of the watchdog lists processes too.
reports_may_repeat=1

points=(start forward backward collective transfer update end)
faults_in() {
  local way=$1 point who
  for point in "${points[@]}"; do
    who='(rank 4 \(pid|process 2 \(pid|ranks 4-|rank 4 )'
    # Of another host's processes nothing is heard before the first step.
    [[ $way != mixed-* || $point != start ]] || who="(rank 6|$who)"
    cell "$way" "kill:$point:4" '1|137' "$who"
    cell "$way" "exit:$point:4" '1' "$who"
    cell "$way" "stop:$point:4" '124' "$who"
    cell "$way" "loop:$point:4" '124' "$who"
    cell "$way" "throw:$point:4" '1' "$who"
  done
  fault_is_slow=1
  cell "$way" slow:forward:4 '0' 'warning: rank 4 .* is slow'
  fault_is_slow=0
}

# A small disk. What it held before is whole behind a run that finds no room, and nothing is beside it.
disk=$PWD/disk
disk_of() {  # BYTES-FREE
  umount "$disk" 2>/dev/null
  mkdir -p "$disk"
  mount -t tmpfs -o size=1m,mode=0777 none "$disk"
  echo 'an earlier result' >"$disk/earlier"
  head -c $((1024 * 1024)) /dev/zero >"$disk/ballast" 2>/dev/null
  truncate -s $(($(stat -c %s "$disk/ballast") - $1)) "$disk/ballast"
}

# full WAY FLAG FREE: no room for the file of FLAG. One report, and the disk is as before.
full() {
  local way=$1 flag=$2 rc=0 reports name
  disk_of "$3"
  launch "$way" "$plan" --data text.txt --steps 60 --watchdog-seconds $watchdog \
    "--$flag" "$disk/earlier" >stdout 2>stderr </dev/null || rc=$?
  ((rc == 1)) || fail "$way: exit code $rc with no room for --$flag"
  reports=$(grep -cE '^mgc-run: .*No space left' stderr)
  ((reports == 1)) || fail "$way: $reports reports of no room for --$flag: $(cat stderr)"
  name=earlier
  [[ $flag != metrics ]] || name=earlier.1
  [[ $(cat "$disk/$name") == 'an earlier result' ]] || fail "$way: --$flag has lost what was there"
  # Of metrics the lines for which there was room, each of them whole.
  if [[ $flag == metrics ]]; then
    grep -vq '}$' "$disk/earlier" && fail "$way: half a line of metrics"
    rm "$disk/earlier"
  fi
  [[ $(ls -A "$disk") == $'ballast\n'$name ]] || fail "$way: --$flag leaves $(ls -A "$disk")"
  pgrep -af "mgc-run .*$plan" >&2 && fail "$way: a process is left"
  count "$way" full
  echo "$way, no room for --$flag: $rc: $(grep -m1 '^mgc-run:' stderr | cut -c1-150)"
}

# A run's folder that has no room for what its ranks are at, and one that has for no more.
full_folder() {
  local way=$1 rc=0
  disk_of 0
  launch "$way" "$plan" --data text.txt --steps 2 --run-dir "$disk/left" >stdout 2>stderr \
    </dev/null || rc=$?
  ((rc == 1)) || fail "$way: exit code $rc with no room for --run-dir"
  grep -q 'No space left' stderr || fail "$way: --run-dir: $(cat stderr)"
  [[ $(cat "$disk/earlier") == 'an earlier result' ]] || fail "$way: --run-dir: lost what was there"
  echo "$way, no room for --run-dir: $rc: $(grep -m1 'No space' stderr | cut -c1-150)"
  disk_of 0
  rm -r "$disk/ballast"
  rc=0
  launch "$way" "$plan" --data text.txt --steps 60 --run-dir "$disk/left" >stdout 2>stderr \
    </dev/null &
  while ! [[ -s stdout ]] && kill -0 $! 2>/dev/null; do sleep 0.02; done
  head -c $((1024 * 1024)) /dev/zero >"$disk/ballast" 2>/dev/null
  wait $! || rc=$?
  ((rc == 0)) || fail "$way: exit code $rc with no more room in --run-dir: $(cat stderr)"
  mgc-status "$disk/left" | grep -q 'has ended' || fail "$way: mgc-status without room"
  count "$way" full
  count "$way" full
}

# A user's stdout that takes no more; mpirun reads that of its processes itself.
full_stdout() {
  local way=$1 rc=0
  launch "$way" "$plan" --data text.txt --steps 60 >/dev/full 2>stderr </dev/null || rc=$?
  if [[ $way == threads || $way == forked-* ]]; then
    ((rc == 1)) || fail "$way: exit code $rc with no room for stdout"
    [[ $(grep -c '^mgc-run: .*cannot write to stdout' stderr) == 1 ]] || fail "$way: $(cat stderr)"
  fi
  pgrep -af "mgc-run .*$plan" >&2 && fail "$way: a process is left"
  count "$way" full
  echo "$way, no room for stdout: $rc: $(grep -m1 '^mgc-run:' stderr | cut -c1-150)"
}

print_counts() {
  local way fault
  faults=(kill exit stop loop throw slow full)
  printf '%-10s' cells "${faults[@]}"
  echo
  for way in threads forked-4 mpi-4 library-4 mixed-4; do
    printf '%-10s' "$way"
    for fault in "${faults[@]}"; do printf '%-10s' "${cells[$way $fault]:-0}"; done
    echo
  done
}

if [[ ${1:-} == all ]]; then
  ways=(forked-4 mpi-4 library-4)
  if why=$(can_pretend_hosts 2>&1); then
    ways+=(mixed-4)
  else
    echo "no pretended hosts here: ${why%%$'\n'*}"
  fi
  for way in "${ways[@]}"; do faults_in "$way"; done
  for point in forward backward collective transfer update; do
    cell threads throw:$point:4 '1' 'rank'
    cell threads loop:$point:4 '124' 'rank'
  done
  if [[ ${2:-} == inside ]]; then
    for way in threads "${ways[@]}"; do
      full "$way" metrics 4096
      for flag in trace dump-grads dump-params; do full "$way" $flag 8192; done
      full_folder "$way"
    done
  fi
  for way in threads "${ways[@]}"; do full_stdout "$way"; done
  umount "$disk" 2>/dev/null
  print_counts
else
  cell forked-4 kill:start:4 1 'process 2 .*killed by signal 9'
  cell forked-4 kill:backward:4 1 'process 2 .*killed by signal 9'
  cell forked-4 exit:forward:4 1 'process 2 .*ended early, with code 0'
  cell forked-4 throw:forward:4 1 'process 2 .*rank 4 .*1F0, .*a failure that was asked for'
  cell forked-4 throw:update:4 1 'rank 4 .*1U0'
  cell forked-4 throw:transfer:4 1 'rank 4 .*RECV_F|rank 4 .*SEND_B'
  cell forked-4 stop:forward:4 124 'rank 4 .*has not answered'
  cell forked-4 stop:collective:4 124 'rank 4 .*has not answered'
  cell forked-4 loop:forward:4 124 'rank 4 .*has been computing 1F0 .*wait for it'
  cell forked-4 loop:start:4 124 'rank 4 .*has been starting'
  cell forked-4 loop:end:4 124 'rank 4 .*has been between steps'
  fault_is_slow=1
  cell forked-4 slow:forward:4 0 'warning: rank 4 .*is slow'
  fault_is_slow=0
  cell mpi-4 kill:backward:4 '1|137' 'process 2 .*has died'
  cell mpi-4 kill:start:4 '1|137' 'process 2 .*has died'
  cell mpi-4 exit:update:4 1 'process 2 .*has died'
  cell mpi-4 throw:forward:4 1 'process 2 .*rank 4 .*a failure that was asked for'
  cell mpi-4 stop:collective:4 124 'rank 4 .*has not answered'
  cell mpi-4 loop:update:4 124 'rank 4 .*has been computing 1U0'
  cell library-4 kill:collective:4 '1|137' 'process 2 .*has died'
  cell library-4 stop:collective:4 124 'rank 4 .*has not answered'
  cell library-4 throw:end:4 1 'process 2 .*a failure that was asked for'
  cell library-4 throw:forward:4 1 'process 2 .*rank 4 .*a failure that was asked for'
  cell threads throw:backward:4 1 'rank 4 .*1B0.*a failure that was asked for'
  cell threads loop:forward:4 124 'rank 4 .*has been computing 1F0'
fi

# A disk that is full is an error of the one that writes, and ends all.
if [[ -e /dev/full ]]; then
  expect 1 'No space left' mgc-run --nproc 4 p.plan --data text.txt --steps 2 --metrics /dev/full
fi
finish
