#!/bin/bash
# The example finds what mgc-compile --auto finds, and its plan is that of the search.
set -euo pipefail
here=$PWD
cd "${TEST_TMPDIR:?}"
"$here/examples/search" > printed.txt
grep -q '^plan: 4 ranks, .* at most, as found: yes$' printed.txt
grep -q '^on one rank: a step of .* on a100x8$' printed.txt
"$here/tools/mgc-compile" gpt2-124m --auto --world-size 4 --global-batch-size 32 --seq-length 1024 \
  --bf16 --cp 1 --cluster a100x8 > auto.txt
best=$(sed -n 's/^best: //p' printed.txt)
[[ -n $best ]] && grep -qE -- "^1 .* $best\$" auto.txt
