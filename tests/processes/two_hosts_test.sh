#!/bin/bash
# Runs on two hosts: two network namespaces with names of their own and a cable between them. The
# same bits as on threads, what the cable carries, and what happens when it is slow or cut.
#   two_hosts_test.sh        what CI runs
#   two_hosts_test.sh all    the cable is cut at every point of a step too
source tests/processes/two_hosts_lib.sh
# gone MS PATTERN: no such process is left that long behind the cut.
gone() {
  while pgrep -f "$2" >/dev/null; do
    (($(date +%s%N) - cut < $1 * 1000000)) || break
    sleep 0.05
  done
  echo "$processes processes, $2: $((($(date +%s%N) - cut) / 1000000)) ms behind the cut"
  pgrep -af "$2" >&2 || return 0
  fail "$processes processes: left $1 ms behind the cut"
  pkill -KILL -f "$2"
}
# What must be the same bits of the steps in the last stdout.
bits() { grep -o '"step":[0-9]*,"loss":[^,]*,"grad_norm":[^,]*' stdout; }

make_text
size=(--micro-batch-size 1 --global-batch-size 2 --seq-length 32)
mgc-compile llama-tiny --world-size 4 --tp 2 "${size[@]}" -o dp2.plan || fail 'no plan with dp 2'
mgc-compile llama-tiny --world-size 4 --tp 2 --pp 2 "${size[@]}" -o pp2.plan ||
  fail 'no plan with pp 2'
steps=10
run=(--data text.txt --steps "$steps" --json)
for plan in dp2.plan pp2.plan; do
  expect 0 '' mgc-run $plan "${run[@]}"
  bits >$plan.bits
  [[ $(wc -l <$plan.bits) == "$steps" ]] || fail "$plan: not $steps steps on threads"
done

# The ranks along tp are on one host, those along dp on both. However many processes a host has, each
# gradient crosses the cable once in each direction; 2.1 allows for headers and acknowledgments.
payload=$(mgc-plan comm --json dp2.plan | grep '"group": "dp", "label": "gradient"' |
  grep -o '"payload_bytes": [0-9]*' | awk '{ sum += $2 } END { print sum }')
((payload > 400000)) || fail "gradients of $payload bytes for each rank"
besides=65536  # to start processes, connect them and hear of them
for processes in 2 4; do
  declare -A before=([rx]=$(carried rx) [tx]=$(carried tx))
  expect 0 '' on_hosts $processes dp2.plan "${run[@]}"
  bits | cmp - dp2.plan.bits || fail "dp 2, $processes processes: other numbers than on threads"
  for direction in rx tx; do
    bytes=$(($(carried $direction) - before[$direction]))
    echo "$processes processes, $direction: $bytes bytes in $steps steps of $payload for each rank"
    ((bytes * 10 <= steps * payload * 21 + besides * 10)) || fail "the cable carries more"
    ((bytes >= steps * payload * 2)) || fail "the cable carries less than the gradients"
  done
  expect 0 '' on_hosts $processes pp2.plan "${run[@]}"
  bits | cmp - pp2.plan.bits || fail "pp 2, $processes processes: other numbers than on threads"
done

# A slow cable.
if why=$(limit 100mbit 64kb 50ms); then
  expect 0 '' on_hosts 4 dp2.plan "${run[@]}"
  bits | cmp - dp2.plan.bits || fail 'a slow cable: other numbers'
  # 874 KB a step in each direction are 70 ms.
  grep -o '"ms":[0-9]*' stdout | cut -d: -f2 | sort -n | head -1 |
    { read -r ms && ((ms >= 60)); } || fail 'the cable was not slow'
  no_limit
else
  echo "no slow cable here: ${why%%$'\n'*}"
fi

# A cut cable: both sides find out, say who does not answer, and end.
# cut_cable PROCESSES PLAN [PLACE FLAG...]: cut behind the first step, or when a rank of this host is at
# a place, as mgc-status calls it.
cut_cable() {
  local processes=$1 plan=$2 place=${3:-} launcher rc=0 process log
  shift $(($# < 3 ? 2 : 3))
  rm -rf left
  : >stdout
  on_hosts "$processes" "$plan" --data text.txt --steps 1000000 --json --watchdog-seconds 3 \
    --run-dir left "$@" >stdout 2>stderr </dev/null &
  launcher=$!
  for ((i = 0; i < 500; ++i)); do
    [[ -s stdout ]] && break
    sleep 0.02
  done
  [[ -s stdout ]] || fail "$processes processes: no first step"
  if [[ -n $place ]]; then
    for ((i = 0; i < 2000; ++i)); do
      mgc-status left 2>/dev/null | grep -m1 -E "^  rank [01], step ([4-9]|..+): has .*$place" >seen && break
    done
    cat seen
    [[ -s seen ]] || fail "$processes processes, $plan: never at '$place': $(mgc-status left)"
  fi
  ip link set cable down
  cut=$(date +%s%N)
  gone 6000 "^[^ ]*mgc-run .*$plan"
  # Open MPI's launcher waits until the kernel gives up its connections to hosts that are cut off,
  # which takes a quarter of an hour by default: this is not about it.
  patience 1
  gone 16000 "orted|$plan"
  patience 15
  wait $launcher || rc=$?
  ((rc == 124)) || fail "$processes processes: exit code $rc behind a cut cable"
  grep -qE '^mgc-run: rank [23] \(pid [0-9]+, second\) has not answered for 3\.[0-9] s' stderr ||
    fail "$processes processes, $place: the near side names nobody: $(cat stderr)"
  for ((process = processes / 2; process < processes; ++process)); do
    log=left/logs/process-000$process.log
    grep -qE '^mgc-run: process 0 \(pid [0-9]+, first\), .* has not answered for 4 s' $log ||
      fail "$processes processes, $place: the far side names nobody: $(cat $log)"
  done
  connect || fail 'the cable stays cut'
}
for processes in 2 4; do cut_cable "$processes" dp2.plan; done

# The same at every point of a step, which a slow rank or a slow cable makes long.
if [[ ${1:-} == all ]]; then
  slow=(--inject slow:forward:0)
  for processes in 2 4; do
    cut_cable "$processes" dp2.plan 'computing [0-9]+F' "${slow[@]}"
    cut_cable "$processes" dp2.plan 'computing [0-9]+B' "${slow[@]}"
    cut_cable "$processes" dp2.plan 'computing [0-9]+U' "${slow[@]}"
    limit 10mbit 64kb 50ms || fail 'no slow cable'
    cut_cable "$processes" dp2.plan 'all-reduce dp'
    cut_cable "$processes" pp2.plan '[0-9]+(SEND|RECV)'
    no_limit
  done
fi
finish
