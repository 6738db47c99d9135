#!/bin/bash
# What fails is named, once, by everybody's launcher, and nothing hangs or stays behind. A row is how
# it is launched, the failure, the exit code, and what the report must say.
#   failures_test.sh        the rows that CI runs
#   failures_test.sh all    every failure at every point, launched in every way
source tools/commands/commands_test_lib.sh
source "$OLDPWD/tests/processes/processes_test_lib.sh"
make_text
mgc-compile llama-tiny --tp 2 --pp 2 --world-size 8 --sequence-parallel --micro-batch-size 2 \
  --global-batch-size 16 -o p.plan || fail 'no plan'
watchdog=2  # seconds
steps=12

# cell WAY FAULT:POINT:RANK CODES PATTERN: CODES are a regular expression too.
cell() {
  local way=$1 fault=$2 codes=$3 pattern=$4 rc=0 begin=$EPOCHREALTIME reports
  launch "$way" p.plan --data text.txt --steps $steps --lr 1e-2 --watchdog-seconds $watchdog \
    --inject "$fault" >stdout 2>stderr || rc=$?
  local ms=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
  [[ $rc =~ ^($codes)$ ]] || fail "$way $fault: exit code $rc instead of $codes"
  grep -qE "^mgc-run: .*$pattern" stderr || {
    fail "$way $fault: no line with '$pattern'"
    head -5 stderr >&2
  }
  # One report: a first line of one, no matter how many lines follow.
  reports=$(grep -cE '^mgc-run: (rank [0-9]+ \(|process [0-9]+ \(.*(died|killed|ended|\): rank))' \
    stderr)
  ((fault_is_slow || reports <= 1 || reports_may_repeat)) || fail "$way $fault: $reports reports"
  # What launchers need to begin and to tear down is theirs; CI machines are slow.
  ((ms < watchdog * 1000 + 6000)) || fail "$way $fault: took $ms ms"
  if pgrep -f "mgc-run .*p.plan --data text.txt" >/dev/null; then
    sleep 1
    pgrep -af "mgc-run .*p.plan --data text.txt" >&2 && fail "$way $fault: a process is left"
  fi
  echo "$way $fault: $rc in $ms ms: $(grep -m1 '^mgc-run:' stderr | cut -c1-150)"
}
fault_is_slow=0
# The table of the watchdog lists processes too.
reports_may_repeat=1

who='(rank 4 \(pid|process 2 \(pid|ranks 4-|rank 4 )'
if [[ ${1:-} == all ]]; then
  for way in forked-4 mpi-4 library-4; do
    for point in start forward backward collective transfer update end; do
      cell $way kill:$point:4 '1|137' "$who"
      cell $way exit:$point:4 '1' "$who"
      cell $way stop:$point:4 '124' "$who"
      cell $way loop:$point:4 '124' "$who"
      [[ $point == start || $point == end ]] || cell $way throw:$point:4 '1' "$who"
    done
    fault_is_slow=1
    cell $way slow:forward:4 '0' 'warning: rank 4 .* is slow'
    fault_is_slow=0
  done
  for point in forward backward collective transfer update; do
    cell threads throw:$point:4 '1' 'rank'
    cell threads loop:$point:4 '124' 'rank'
  done
else
  cell forked-4 kill:start:4 1 'process 2 .*killed by signal 9'
  cell forked-4 kill:backward:4 1 'process 2 .*killed by signal 9'
  cell forked-4 kill:end:4 1 'process 2 .*killed by signal 9'
  cell forked-4 exit:forward:4 1 'process 2 .*ended early, with code 0'
  cell forked-4 exit:end:4 1 'process 2 .*ended early, with code 0'
  cell forked-4 throw:forward:4 1 'process 2 .*rank 4 .*1F0, .*a failure that was asked for'
  cell forked-4 throw:update:4 1 'rank 4 .*1U0'
  cell forked-4 throw:transfer:4 1 'rank 4 .*RECV_F|rank 4 .*SEND_B'
  cell forked-4 stop:forward:4 124 'rank 4 .*has not answered'
  cell forked-4 stop:collective:4 124 'rank 4 .*has not answered'
  cell forked-4 stop:end:4 124 'rank 4 .*has not answered'
  cell forked-4 loop:forward:4 124 'rank 4 .*has been computing 1F0 .*wait for it'
  cell forked-4 loop:backward:4 124 'rank 4 .*has been computing 1B0 .*wait for it'
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
  cell library-4 throw:forward:4 1 'process 2 .*rank 4 .*a failure that was asked for'
  cell threads throw:backward:4 1 'rank 4 .*1B0.*a failure that was asked for'
  cell threads loop:forward:4 124 'rank 4 .*has been computing 1F0'
fi

# A disk that is full is an error of the one that writes, and ends all.
if [[ -e /dev/full ]]; then
  expect 1 'No space left' mgc-run --nproc 4 p.plan --data text.txt --steps 2 --metrics /dev/full
fi
finish
