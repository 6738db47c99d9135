#!/bin/bash
# Trains a Llama-style model on the King James text with eight ranks (tp2 pp2 dp2, sequence
# parallelism) on threads, and the same model on one rank; shows that the losses are equal; goes on
# from the checkpoint of the first on four ranks in two processes; lets it say some twenty words.
#   examples/quickstart.sh FOLDER    FOLDER takes text, plans, pictures, timelines and metrics.
# Needs the mgc commands on PATH and Debian's `bible`.
set -euo pipefail
out=${1:?usage: examples/quickstart.sh FOLDER}
mkdir -p "$out"
cd "$out"
steps=40

echo '== the text' >&2
bible -f 'Gen1:1-Rev22:21' > kjv.txt
wc -c kjv.txt >&2

echo '== which plan for eight ranks is predicted to be the fastest?' >&2
mgc-compile llama-tiny --auto --world-size 8 --global-batch-size 16 --html auto.html | tee auto.txt

echo '== compiling llama-tiny for eight ranks and for one' >&2
model=(llama-tiny --micro-batch-size 2 --global-batch-size 16)
mgc-compile "${model[@]}" --world-size 8 --tp 2 --pp 2 --sequence-parallel \
  -o eight.plan --dot eight.dot --svg eight.svg
mgc-compile "${model[@]}" --world-size 1 -o one.plan
mgc-plan show eight.plan
mgc-plan html eight.plan -o eight.html
mgc-plan trace eight.plan > eight.predicted.json

train() {  # PLAN NAME [FLAG...]
  mgc-run "$1" --data kjv.txt --steps "$steps" --seed 7 --lr 3e-3 --min-lr 3e-4 \
    --lr-warmup-steps 4 --lr-decay-style cosine --metrics "$2.metrics.jsonl" "${@:3}"
}
echo "== training $steps steps on eight ranks" >&2
train eight.plan eight --trace eight.measured.json --save checkpoints --resume none
mgc-report eight.metrics.jsonl eight.plan --trace eight.measured.json -o eight.run.html
echo "== training the same steps on one rank" >&2
train one.plan one > /dev/null 2>&1

echo '== step, loss on eight ranks, loss on one rank, relative difference' >&2
losses() { grep -o '"loss":[^,}]*' "$1" | cut -d: -f2; }
paste <(losses eight.metrics.jsonl) <(losses one.metrics.jsonl) |
  awk '{ d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > worst) worst = d
         if (NR == 1 || NR % 10 == 0) printf "%4d  %.6f  %.6f  %.1e\n", NR, $1, $2, d
         first = NR == 1 ? $1 : first; last = $1 }
       END { printf "largest relative difference over %d steps: %.1e\n", NR, worst
             if (NR == 0 || worst > 1e-4 || last >= first) exit 1 }'
echo "the losses fall, and are those of one rank"

echo '== the run goes on from its checkpoint, on four ranks in two processes' >&2
mgc-compile "${model[@]}" --world-size 4 --tp 2 --zero 1 -o four.plan
mgc-run --nproc 2 four.plan --data kjv.txt --steps $((steps + 4)) --seed 7 --lr 3e-4 --load checkpoints
mgc-ckpt show checkpoints

echo '== what it has learned to say, on two ranks, token by token' >&2
asked=(llama-tiny --world-size 2 --tp 2)
mgc-compile "${asked[@]}" --next-token prompt --seq-length 32 -o prompt.plan
mgc-compile "${asked[@]}" --next-token token -o token.plan
mgc-generate prompt.plan token.plan --load checkpoints --tokenizer bytes --prompt 'And God said' \
  --max-new-tokens 100 --temperature 0.7

echo "Left in $out:"
ls auto.html auto.txt eight.plan eight.html eight.svg eight.predicted.json eight.measured.json eight.metrics.jsonl eight.run.html 2>/dev/null
