#!/bin/bash
# The example prints a plan, trains, and its loss falls; without data it says what is missing.
set -euo pipefail
gpt=$PWD/examples/gpt
cd "${TEST_TMPDIR:?}"
for i in $(seq 2000); do echo "line $i of a text that a small model can learn"; done > text.txt
"$gpt" text.txt > printed.txt
grep -q '^mesh @m \[tp=2, pp=2\]: 4 ranks' printed.txt
loss() { sed -n "s/^step $1 | loss \([0-9.]*\) .*/\1/p" printed.txt; }
echo "loss: $(loss 1), then $(loss 20)"
awk -v first="$(loss 1)" -v last="$(loss 20)" 'BEGIN { exit !(first > 5 && last < 4) }'

code=0
"$gpt" missing.txt > printed.txt 2> errors.txt || code=$?
((code == 1))
grep -q '^error: .*missing.txt' errors.txt
