#!/bin/bash
# The example goes on as mgc-generate does, with another plan.
set -euo pipefail
generate=$PWD/examples/generate
export PATH=$PWD/tools:$PATH
cd "${TEST_TMPDIR:?}"
for i in $(seq 2000); do echo "line $i of a text that a small model can learn"; done > text.txt
mgc-compile llama-tiny --seq-length 32 --global-batch-size 8 -o train.plan > log
mgc-run train.plan --data text.txt --lr 1e-2 --steps 60 --save run > log 2>&1
"$generate" run 'line 12 of a text that a' > said.txt
cat said.txt
mgc-compile llama-tiny --next-token whole --seq-length 96 -o whole.plan > log
mgc-generate whole.plan --load run --tokenizer bytes --prompt 'line 12 of a text that a' |
  cmp - said.txt

code=0
"$generate" missing text > printed.txt 2> errors.txt || code=$?
((code == 1))
grep -q missing errors.txt
