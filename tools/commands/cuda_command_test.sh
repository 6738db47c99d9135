#!/bin/bash
# mgc-run and mgc-generate on GPUs that the CPU plays: two that ranks share, and one for each rank.
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
# Processes get as far as to their communicators, which the emulator has in one process only. Which
# of them is heard first does not matter.
refuse 4 'an id of another process; ranks are played in one only' \
  mgc-run-emulated --nproc 2 "${step[@]}" --device cuda
refuse 4 '2 ranks here come behind 2 of other processes of this host, and 3 GPUs' \
  mgc-run-emulated --nproc 2 "${step[@]}" --device cuda --gpus 3

# Texts are those of the CPU, whole ones or with kept keys.
cat >llama.json <<'END'
{"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": 256, "max_position_embeddings": 16}
END
two=(--global-batch-size 2 --micro-batch-size 2)
mgc-compile llama.json "${two[@]}" -o train.plan >log || fail "no plan: $(<log)"
mgc-run-emulated train.plan --data text.txt --lr 1e-2 --steps 10 --save run >log 2>&1 ||
  fail "no weights: $(<log)"
mgc-compile llama.json --next-token whole --tp 2 --world-size 2 "${two[@]}" -o whole.plan >log
mgc-compile llama.json --next-token prompt --seq-length 8 "${two[@]}" -o prompt.plan >log
mgc-compile llama.json --next-token token "${two[@]}" -o token.plan >log
say=(--load run --tokenizer bytes --prompt line --prompt of --max-new-tokens 4)
mgc-generate-emulated whole.plan "${say[@]}" >text 2>log || fail "no text: $(<log)"
for plans in whole.plan 'prompt.plan token.plan'; do
  # shellcheck disable=SC2086
  mgc-generate-emulated $plans "${say[@]}" --device cuda 2>log | cmp - text ||
    fail "$plans goes on otherwise on GPUs: $(<log)"
done
expect 1 'mgc-generate: ' sh -c 'exec mgc-generate-emulated "$@" >/dev/full' sh whole.plan \
  "${say[@]}"
also 'cannot write'
finish
