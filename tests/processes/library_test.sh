#!/bin/bash
# All-reduces by the MPI library's own (--allreduce mpi): losses are near those of threads, equal from
# run to run, and the run says what it does.
source tools/commands/commands_test_lib.sh
source "$OLDPWD/tests/processes/processes_test_lib.sh"
make_text
run=(--data text.txt --steps 3 --lr 1e-2 --json)
note='note: sums between processes come from the MPI library, in its order'

# numbers WAY: step and loss.
numbers() {
  grep -o '"step":[0-9]*,"loss":[^,]*' "$1.json" | tr -d '"' | tr ',:' '  '
}

# near WAY: as many losses as threads have, each as near as rounding leaves it. A sum of n <= 4 terms
# in another order differs by at most 2 (n - 1) 2^-24 < 4e-7 of its terms, and in three steps a loss
# has a dozen or two of such sums one behind the other: 1e-5. A term that is left out, or comes twice,
# moves a loss by more than 1e-3.
near() {
  paste -d' ' <(numbers threads) <(numbers "$1") | awk -v way="$1" '
    { difference = $4 - $8; if (difference < 0) difference = -difference
      if ($2 != $6 || !(difference <= 1e-5 * $4)) { print way ": " $0; bad = 1 } }
    END { exit bad || NR != 3 }' || fail "$1: losses are not those of threads"
}

# Sums of activations over tp, of gradients over dp and both; dp in a bucket, and with ZeRO; bf16 has
# no bound that means anything: a last bit of an f32 may be one of a bf16.
plans=(
  '4 llama-tiny --tp 4 --global-batch-size 4'
  '4 gpt2-tiny --tp 2 --global-batch-size 8'
  '4 llama-tiny --pp 2 --global-batch-size 8'
  '4 llama-tiny --tp 2 --zero 1 --global-batch-size 8'
  '4 llama-tiny --bf16 --tp 2 --global-batch-size 8'
)
others=0  # runs with another bit than on threads
for plan in "${plans[@]}"; do
  read -r ranks model flags <<<"$plan"
  # shellcheck disable=SC2086
  mgc-compile "$model" $flags --world-size "$ranks" -o p.plan || fail "no plan: $plan"
  launch threads p.plan "${run[@]}" >threads.json || fail "threads: $plan"
  for way in library-2 library-4; do
    expect 0 "$note" launch $way p.plan "${run[@]}"
    [[ $(grep -cF "$note" stderr) == 1 ]] || fail "$way: the note is said more than once: $plan"
    mv stdout $way.json
    [[ $plan == *bf16* ]] || near $way
    cmp -s <(numbers threads) <(numbers $way) || others=$((others + 1))
    expect 0 "$note" launch $way p.plan "${run[@]}"
    mv stdout again.json
    cmp <(numbers $way) <(numbers again) || fail "$way: two runs differ: $plan"
  done
done
# Else the library has not been asked.
((others > 0)) || fail 'every run has the same bits as threads'

# Copies of a parameter must stay the same.
mgc-compile llama-tiny --tp 2 --world-size 8 --global-batch-size 8 -o p.plan || fail 'no plan'
expect 3 'nearest legal: 2 or 4 processes with as many ranks each, or --allreduce ordered' \
  launch library-3 p.plan "${run[@]}"
also '[N1]'
# same WAY FLAG...: as on threads, and nothing is said of a library.
launch threads p.plan "${run[@]}" >threads.json || fail threads
same() {
  launch "$1" p.plan "${run[@]}" "${@:2}" >"$1.json" 2>stderr || fail "$*"
  ! grep -qF "$note" stderr || fail "$*: the note is said"
  cmp <(numbers threads) <(numbers "$1") || fail "$*: other losses"
}
same library-1  # nobody to add with
same mpi-2 --allreduce ordered
finish
