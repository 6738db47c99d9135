#!/bin/bash
# Plans with every collective and schedule, in several processes as on threads: the same bits of every
# loss and norm, of gradients and parameters. A word `all` also runs those that CI leaves out.
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

# run WAY PLAN: leaves WAY.json, WAY.grads and WAY.params.
run() {
  launch "$1" "$2" --data text.txt --steps 3 --lr 1e-2 --json --dump-grads "$1.grads" \
    --dump-params "$1.params" >"$1.json" 2>stderr || {
    fail "$1 of: $plan"
    cat stderr >&2
  }
}

number=0
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
  ((number % 3 != 1)) && [[ ${1:-} != all ]] || ways+=(mpi-2 mpi-4)
  [[ ${1:-} != all ]] || ways+=(forked-3)
  for way in "${ways[@]}"; do
    run "$way" p.plan
    cmp <(numbers threads) <(numbers "$way") || fail "$way has other losses: $plan"
    [[ $(numbers "$way" | wc -l) == 3 ]] || fail "$way has not done three steps: $plan"
    cmp threads.grads "$way.grads" || fail "$way has other gradients: $plan"
    cmp threads.params "$way.params" || fail "$way has other parameters: $plan"
  done
done
finish
