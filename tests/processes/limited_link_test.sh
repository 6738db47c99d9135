#!/bin/bash
# What a cable of 1 Gbit/s between two hosts allows, and what of it is reached: sums alone, then a
# GPT-2 whose communication runs beside its compute, measured beside what its plans predict. A
# measurement: nothing else should run on the machine.
#   limited_link_test.sh [MACHINE]    a machine file as `mgc-bench --calibrate` writes it; without one
#                                     this machine is calibrated first
[[ ${1:-/} == /* ]] || set -- "${BUILD_WORKING_DIRECTORY:-$PWD}/$1"  # bazel run starts elsewhere
source tests/processes/two_hosts_lib.sh
make_text
rate=125000000  # bytes a second, both ways
why=$(limit 1gbit 512kb 50ms) || { echo "skipped: no limited cable here: ${why%%$'\n'*}"; exit 0; }
steps=4

# run_limited PLAN: one process and one core a host; leaves trace.json and metrics of all steps.
run_limited() {
  local before_rx before_tx
  before_rx=$(carried rx)
  before_tx=$(carried tx)
  rm -f trace.json
  on_hosts 2 "$1" --workers 1 --data text.txt --steps $steps --json --trace trace.json \
    --trace-steps $steps >stdout 2>stderr </dev/null || { fail "$1 does not run"; cat stderr >&2; }
  rx=$((($(carried rx) - before_rx) / steps))
  tx=$((($(carried tx) - before_tx) / steps))
}

# spent: milliseconds a step, of the steps behind the first one, of the rank that waits longest:
# whole steps, collectives, compute that waits.
spent() {
  awk '
    function number(key) {
      match($0, "\"" key "\": [0-9.]+")
      return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0
    }
    /"ph": "X"/ && number("pid") <= 2 {  # the prediction stands behind the two ranks
      ++n
      ranks[n] = r = number("pid")
      cats[n] = $0 ~ /"cat": "compute"/ ? "compute" : $0 ~ /"cat": "collective"/ ? "collective" : ""
      begins[n] = number("ts")
      ends[n] = begins[n] + number("dur")
      if ($0 !~ /"name": "[0-9]*U[0-9]*", "cat": "action"/) next
      if (!(r in first)) first[r] = ends[n]
      last[r] = ends[n]
      ++updates[r]
    }
    END {
      for (i = 1; i <= n; ++i) {
        r = ranks[i]
        if (!(r in first) || begins[i] < first[r] || ends[i] > last[r]) continue
        if (cats[i] == "compute") compute[r] += ends[i] - begins[i]
        if (cats[i] == "collective") collectives[r] += ends[i] - begins[i]
      }
      for (r in first) {
        if (updates[r] < 2) continue
        k = 1000 * (updates[r] - 1)
        waits = (last[r] - first[r] - compute[r]) / k
        if (waits < most) continue
        most = waits
        text = sprintf("%.0f %.0f %.0f", (last[r] - first[r]) / k, collectives[r] / k, waits)
      }
      print text
    }' trace.json
}

# predicted: the same, as the plan says.
predicted() {
  { mgc-plan show --json model.plan; mgc-plan comm --json model.plan; } |
    grep -oE '"(predicted_step|collective|exposed)_ns": [0-9]+' |
    awk '{ text = text sprintf(" %.0f", $2 / 1e6) } END { print text }'
}

# payload PLAN: bytes of a rank's gradients in a step.
payload() {
  mgc-plan comm --json "$1" | grep '"group": "dp", "label": "gradient"' |
    grep -o '"payload_bytes": [0-9]*' | awk '{ sum += $2 } END { print sum }'
}

# Sums alone: eight tokens are computed in no time.
mgc-compile gpt2-124m --world-size 2 --seq-length 8 --global-batch-size 2 -o sums.plan \
  2>stderr || fail 'no plan of sums'
bytes=$(payload sums.plan)
run_limited sums.plan
read -r step collectives waits <<<"$(spent)"
reached=$((bytes * 100000 / collectives / (rate / 10)))
echo "sums of $bytes bytes: $collectives ms of a step of $step ms," \
  "$((reached / 10)).$((reached % 10)) % of what the cable allows;" \
  "$rx bytes received and $tx sent a step"
((reached >= 900)) || fail 'less than 90 % of what the cable allows'
(((rx + tx) * 10 <= bytes * 21)) || fail "$((rx + tx)) bytes of $bytes cross the cable"

# Communication beside compute. Both hosts' ranks are computed on this machine's cores.
if [[ -n ${1:-} ]]; then
  cp "$1" here.mgc
else
  mgc-bench --calibrate -o here.mgc >stdout 2>stderr || fail "not calibrated: $(cat stderr)"
fi
sed "s/^  tier .*/  tier cable ranks any bandwidth $rate efficiency 0.95 latency 5e-05/" here.mgc >cable.mgc
print_row() { printf '%-34s %9s %9s %14s %9s %14s %9s\n' "$@"; }
print_row 'milliseconds a step' step predicted collectives predicted 'compute waits' predicted
while read -r flags; do
  # shellcheck disable=SC2086
  mgc-compile gpt2-124m --world-size 2 --seq-length 256 --micro-batch-size 4 --global-batch-size 8 \
    --cluster cable.mgc $flags -o model.plan 2>stderr || fail "no plan: $flags: $(cat stderr)"
  run_limited model.plan
  read -r step collectives waits <<<"$(spent)"
  read -r will_take will_sum will_wait <<<"$(predicted)"
  print_row "dp 2 $flags" "$step" "$will_take" "$collectives" "$will_sum" "$waits" "$will_wait"
done <<'PLANS'

--zero 1
--zero 2
--zero 3
--grad-reduce-dtype bf16
PLANS
finish
