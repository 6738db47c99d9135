#!/bin/bash
# mgc-run on GPUs that the CPU plays: two that ranks share, and one for each rank.
set -uo pipefail
source tools/commands/commands_test_lib.sh

for i in $(seq 400); do echo "line $i of a text that is long enough to train on"; done >text.txt
mgc-compile gpt2-tiny --tp 2 --pp 2 --micro-batch-size 1 --global-batch-size 1 --seq-length 8 \
  -o four.plan || fail 'no plan to run'

# Three steps: issued, captured, launched.
run() { mgc-run-emulated four.plan --data text.txt --steps 3 --json "$@" 2>stderr; }
numbers() { grep -oE '"(loss|grad_norm)":[0-9.e-]*' | cut -d: -f2; }
run >cpu.out || fail 'no run on the CPU'
[[ $(numbers <cpu.out | wc -l) == 6 ]] || fail 'not three steps'
# near FILE: its losses and norms, beside the CPU's.
near() {
  paste <(numbers <cpu.out) <(numbers <"$1") | awk '
    { off = $1 - $2; if (off < 0) off = -off; if (NF < 2 || off > 1e-5 * $1) bad = 1 }
    END { exit bad || NR < 6 }' || fail "$1 has other losses than the CPU"
}
run --device cuda --gpus 2 >two.out || fail "two GPUs: $(<stderr)"
near two.out
run --device cuda >own.out || fail "a GPU for each rank: $(<stderr)"
near own.out

step=(four.plan --data text.txt --steps 1)
refuse 4 'a rank has one, of which there are 4; nearest legal: 4' \
  mgc-run-emulated "${step[@]}" --device cuda --gpus 5
refuse 4 'there are 8 here; nearest legal: 8' mgc-run-emulated "${step[@]}" --device cuda --gpus 9
refuse 2 'must be between 1 and' mgc-run-emulated "${step[@]}" --device cuda --gpus 0
refuse 2 '--gpus is given, and no GPU is asked for' mgc-run-emulated "${step[@]}" --gpus 2
refuse 2 '--allreduce mpi adds in this machine' \
  mgc-run-emulated "${step[@]}" --device cuda --allreduce mpi
finish
