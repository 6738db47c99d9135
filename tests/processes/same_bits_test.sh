#!/bin/bash
# Plans with every collective and schedule, in several processes as on threads: the same bits of every
# loss and norm, of gradients and parameters.
#   same_bits_test.sh                      the plans that CI runs
#   same_bits_test.sh all [N of M]         the corpus of plans of small models, or a part of it, in 2
#                                          to 4 processes that share memory, have MPI alone, or both
source tools/commands/commands_test_lib.sh
source "$OLDPWD/tests/processes/processes_test_lib.sh"
make_text

# Flags of mgc-compile behind the number of ranks.
plans=(
  '8 llama-tiny --tp 2 --pp 2 --sequence-parallel --micro-batch-size 2 --global-batch-size 16'
  '4 llama-tiny --tp 4 --global-batch-size 4'
  '4 llama-tiny --zero 1 --global-batch-size 8'
  '4 llama-tiny --tp 2 --zero 2 --global-batch-size 8'
  '4 gpt2-tiny --zero 3 --global-batch-size 8'
  '4 llama-tiny --pp 4 --schedule gpipe --global-batch-size 8'
  '4 gpt2-tiny --pp 2 --tp 2 --global-batch-size 8 --recompute full'
  '4 llama-tiny --pp 2 --vp 2 --schedule interleaved --global-batch-size 8'
  '4 llama-tiny --cp 2 --tp 2 --global-batch-size 4'
  '4 llama-tiny --bf16 --tp 2 --sequence-parallel --global-batch-size 8'
  '4 gpt2-tiny --bf16 --grad-reduce-dtype bf16 --global-batch-size 8'
  '4 llama-tiny --fp16 --tp 2 --split-products 2 --global-batch-size 8'
)

# numbers WAY: step, loss and norm of the last run.
numbers() {
  grep -o '"step":[0-9]*,"loss":[^,]*,"grad_norm":[^,]*' "$1.json"
}

# run WAY PLAN FLAG...: leaves WAY.json, WAY.grads and WAY.params.
run() {
  local way=$1
  launch "$@" --data text.txt --steps 3 --lr 1e-2 --json --dump-grads "$way.grads" \
    --dump-params "$way.params" >"$way.json" 2>stderr </dev/null || {
    fail "$way of: $plan"
    cat stderr >&2
  }
}

# compare WAY PLAN FLAG...: runs a plan again, behind its run on threads.
compare() {
  local way=$1
  rm -f "$way".{json,grads,params}
  run "$@"
  cmp <(numbers threads) <(numbers "$way") || fail "$way has other losses: $plan"
  [[ $(numbers "$way" | wc -l) == 3 ]] || fail "$way has not done three steps: $plan"
  cmp threads.grads "$way.grads" || fail "$way has other gradients: $plan"
  cmp threads.params "$way.params" || fail "$way has other parameters: $plan"
}

run_few() {
  local number=0 ranks model flags ways
  for plan in "${plans[@]}"; do
    number=$((number + 1))
    read -r ranks model flags <<<"$plan"
    # shellcheck disable=SC2086
    mgc-compile "$model" $flags --world-size "$ranks" -o p.plan 2>stderr || {
      fail "no plan: $plan"
      cat stderr >&2
      continue
    }
    run threads p.plan
    ways=(forked-2 forked-4)
    # Every third by MPI too: its launcher needs a second each time.
    ((number % 3 != 1)) || ways+=(mpi-2 mpi-4)
    for way in "${ways[@]}"; do compare "$way" p.plan; done
  done
}

# count KEY: one more run of that kind.
declare -A counts
count() { counts[$1]=$((${counts[$1]:-0} + 1)); }

# The corpus, each plan in every way that has a rank for each process.
run_corpus() {
  local part=${1:-1} parts=${2:-1} number=0 ranks flags way before processes each
  local ways=(forked-2 forked-3 forked-4 far-2 far-4 mixed-4)
  if ! why=$(can_pretend_hosts 2>&1); then
    echo "no pretended hosts here, so no runs without shared memory: ${why%%$'\n'*}"
    ways=(forked-2 forked-3 forked-4)
  fi
  mkdir corpus
  "$corpus" corpus >list || fail 'no corpus'
  while read -r plan ranks flags; do
    number=$((number + 1))
    ((number % parts == part % parts)) || continue
    # shellcheck disable=SC2086
    run threads "corpus/$plan.plan" $flags
    for way in "${ways[@]}"; do
      processes=${way#*-}
      if ((ranks < processes)); then
        count "$way fewer ranks"
        continue
      fi
      before=$failures
      # shellcheck disable=SC2086
      compare "$way" "corpus/$plan.plan" $flags
      each=one
      ((ranks == processes)) || each=several
      if ((failures == before)); then count "$way $each"; else count "$way other bits"; fi
    done
  done <list
  echo "$number plans; runs with the same bits as on threads:"
  print_row 'way' 'one rank each' 'several ranks' 'other bits' 'fewer ranks'
  for way in "${ways[@]}"; do
    print_row "$way" "${counts[$way one]:-0}" "${counts[$way several]:-0}" \
      "${counts[$way other bits]:-0}" "${counts[$way fewer ranks]:-0}"
  done
}
print_row() { printf '%-10s %14s %14s %11s %12s\n' "$@"; }

corpus=$OLDPWD/tests/plan_corpus/write_plans
if [[ ${1:-} == all ]]; then
  run_corpus "${2:-1}" "${4:-1}"
else
  run_few
fi
finish
