#!/bin/bash
# The programs that write a model: what they print compiles, with one rank and with four, and what
# they make up trains it; other sizes and mistakes in flags are what they should be.
set -euo pipefail
export PATH=$PWD/examples:$PWD/tools:$PATH
cd "${TEST_TMPDIR:?}"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# losses PLAN SAMPLES NAME...: of 60 steps, one a line; NAMEs are data inputs
losses() {
  local plan=$1 samples=$2 inputs=()
  for name in "${@:3}"; do inputs+=(--inputs "$name=$samples"); done
  mgc-run "$plan" "${inputs[@]}" --steps 60 --lr 1e-2 --min-lr 1e-2 --json 2> run.log |
    sed -n 's/.*"loss":\([^,]*\),.*/\1/p'
}

# trains MODEL SAMPLES NAME...: on four ranks as on one, and the loss falls. Later steps part: at this
# rate rounding grows from step to step.
trains() {
  mgc-compile "$1.mgc" --world-size 1 --micro-batch-size 4 --global-batch-size 16 -o one.plan
  mgc-compile "$1.mgc" --world-size 4 --tp 2 --pp 2 --micro-batch-size 4 --global-batch-size 16 \
    -o four.plan
  losses one.plan "${@:2}" > one.txt
  losses four.plan "${@:2}" > four.txt
  [[ $(wc -l < one.txt) == 60 ]] || { cat run.log >&2; fail "$1: not 60 steps"; }
  paste one.txt four.txt |
    awk '{ d = ($1 - $2) / $1; if (NR <= 10 && (d < -1e-4 || d > 1e-4)) exit 1
           if (NR == 1) first = $1; last = $1 } END { if (last > 0.9 * first) exit 1 }' ||
    { paste one.txt four.txt >&2; fail "$1: other losses, or they do not fall"; }
}

t5 --samples pairs.safetensors > t5.mgc
trains t5 pairs.safetensors source mask tokens targets weights
mixer --samples images.safetensors > mixer.mgc
trains mixer images.safetensors patches labels weights

t5 --layers 3 --hidden 32 > other.mgc
grep -q '^graph @t5 logical layers=6' other.mgc || fail 'not three layers each way'
grep -q 'embedding.word: f32\[vocab=257,embed=32\]' other.mgc || fail 'not 32 wide'

# refuse CODE TEXT COMMAND...
refuse() {
  local code=0
  "${@:3}" > stdout 2> stderr || code=$?
  ((code == $1)) || fail "exit code $code instead of $1: ${*:3}"
  grep -qF -- "$2" stderr || { cat stderr >&2; fail "no '$2': ${*:3}"; }
  [[ ! -s stdout ]] || fail "stdout of a refused command: ${*:3}"
}
refuse 2 'no flag --depth' t5 --depth 3
refuse 2 '--batch 4 --source 24 --seq 16' t5 --depth 3
refuse 2 '--layers is not from 1 to 1048576: `0`' t5 --layers 0
refuse 2 '--layers is not from 1 to 1048576: ``' mixer --layers
refuse 4 '[relative_bucket_c2]' t5 --buckets 30
refuse 1 'missing/pairs' t5 --samples missing/pairs
