#!/bin/bash
# Does training in bf16 go the way that training in f32 goes? 300 steps of llama-tiny at 4 x 256
# tokens on the King James text, from three seeds in f32 and the same three in bf16. Every mean loss
# of ten steps in bf16 must lie within what the three seeds in f32 span there, and half a percent
# beyond. Needs Debian's `bible-kjv`. Prints the means, and how far from f32 they are.
#
# At mgc-run's default rate, 1e-3. At 3e-3 this would say nothing of bf16: there even f32 leaves the
# band of its own three seeds (the last 60 steps of seed 5 are 1 % above it).
set -euo pipefail
export PATH=$PWD/tools:$PATH
preset=$PWD/frontends/presets/llama-tiny.json
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
seeds=(1 2 3)

bible -f 'Gen1:1-Rev22:21' >kjv.txt
(($(wc -c <kjv.txt) > 4000000)) || { echo 'FAILED: the text is not whole' >&2; exit 1; }

# The preset with room for 256 positions.
sed 's/: 128\b/: 256/' "$preset" >config.json
mgc-compile config.json --micro-batch-size 4 -o f32.plan
mgc-compile config.json --micro-batch-size 4 --bf16 -o bf16.plan
for type in f32 bf16; do
  for seed in "${seeds[@]}"; do
    mgc-run $type.plan --data kjv.txt --steps 300 --seed "$seed" --lr-warmup-steps 20 \
      --lr-decay-style cosine --metrics $type.$seed.jsonl >run.log
    grep -o '"loss":[^,}]*' $type.$seed.jsonl | cut -d: -f2 >$type.$seed
  done
done

paste f32.[123] bf16.[123] | awk '
  { for (i = 1; i <= 6; ++i) sum[i] += $i }
  NR % 10 == 0 {
    least = most = sum[1]
    for (i = 2; i <= 3; ++i) {
      if (sum[i] < least) least = sum[i]
      if (sum[i] > most) most = sum[i]
    }
    printf "steps %3d to %3d  f32 %.4f to %.4f  bf16", NR - 9, NR, least / 10, most / 10
    for (i = 4; i <= 6; ++i) {
      outside = !(sum[i] >= least * 0.995 && sum[i] <= most * 1.005)
      missed += outside
      printf " %.4f%s", sum[i] / 10, outside ? " MISSED" : ""
      beyond = sum[i] < least ? least / sum[i] - 1 : sum[i] > most ? sum[i] / most - 1 : 0
      if (beyond > worst) worst = beyond
      apart = sum[i] / sum[i - 3] - 1
      if (apart < 0) apart = -apart
      if (apart > furthest) furthest = apart
    }
    printf "\n"
    split("", sum)
  }
  END {
    printf "at most %.3f %% beyond the three seeds of f32 (0.5 %% may be),", 100 * worst
    printf " at most %.3f %% from the same seed in f32\n", 100 * furthest
    if (NR != 300 || missed > 0) { printf "FAILED: %d of 90 means missed\n", missed; exit 1 }
    print "all 90 means within the band"
  }'
