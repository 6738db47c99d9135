#!/bin/bash
# mgc-run from the command line.
set -uo pipefail
source tools/commands_test_lib.sh

expect 0 '' mgc-run --help
refuse 2 'usage: mgc-run PLAN' mgc-run
for i in $(seq 400); do echo "line $i of a text that is long enough to train on"; done >text.txt
mgc-compile gpt2-tiny --tp 2 --pp 2 --micro-batch-size 1 --global-batch-size 2 --seq-length 32 \
  -o tiny.plan || fail 'no plan to run'
run_examples mgc-run
[[ $(wc -l <metrics.jsonl) == 20 ]] || fail 'metrics.jsonl does not hold 20 steps'
grep -q '"traceEvents"' timeline.json || fail 'no timeline'
grep -q 'predicted: pp 1' timeline.json || fail 'no prediction beside what was measured'
grep -q '"name": "rank 3 (tp 1, pp 1)"' timeline.json || fail 'no rank 3'

# Only objects on stdout; the same run twice gives the same numbers.
numbers() { sed 's/"ms":.*//' stdout; }
expect 0 '' mgc-run tiny.plan --data text.txt --steps 3 --seed 7 --json --dump-params p.st \
  --dump-grads g.st
[[ $(grep -c '^{"step":[123],"loss":.*,"grad_norm":.*,"lr":.*,"ms":.*,"tokens_per_second":.*}$' \
  stdout) == 3 ]] || fail 'not three objects'
[[ -s p.st && -s g.st ]] || fail 'no tensors'
numbers >first
expect 0 '' mgc-run tiny.plan --data text.txt --steps 3 --seed 7 --json --workers 1
numbers | cmp - first || fail 'another number of workers, other numbers'
expect 0 'evaluation after step 2' mgc-run tiny.plan --data text.txt --steps 2 --json \
  --eval-interval 2 --eval-tail-samples 5
[[ $(wc -l <stdout) == 2 ]] || fail 'evaluations stand among the objects'
expect 0 '' mgc-run tiny.plan --data text.txt --steps 2 --eval-interval 1 --eval-data text.txt \
  --eval-steps 1
says 'evaluation after step 2 | loss'
expect 0 '' mgc-run tiny.plan --data text.txt --steps 4 --lr 0.01 --min-lr 0.001 \
  --lr-warmup-steps 1 --lr-decay-style cosine --lr-decay-steps 3 --weight-decay 0 \
  --adam-beta1 0.8 --adam-beta2 0.95 --adam-eps 1e-6 --clip-grad 0 --json
says '"step":2,'
[[ $(grep -o '"lr":[^,]*' stdout | tail -1) == '"lr":0.001' ]] || fail 'the rate ends elsewhere'

# A run that fails after a step still writes what it recorded.
refuse 1 'cannot write /dev/full' mgc-run tiny.plan --data text.txt --steps 2 \
  --metrics /dev/full --trace failed.json
grep -q '"name": "1U0"' failed.json || fail 'no timeline of a run that failed'

# Refusals.
refuse 2 '[F6]' mgc-run tiny.plan
also '--steps'
refuse 2 '[F3]' mgc-run tiny.plan --data text.txt --steps 0
refuse 2 '[F2]' mgc-run tiny.plan --data text.txt --steps 1 --lr nan
refuse 2 '[F3]' mgc-run tiny.plan --data text.txt --steps 1 --adam-beta1 1
refuse 2 '[F4]' mgc-run tiny.plan --data text.txt --steps 1 --lr-decay-style cosinus
refuse 2 '[F1]' mgc-run tiny.plan --data text.txt --step 1
also 'did you mean --steps?'
refuse 3 '[B8]' mgc-run tiny.plan --data text.txt --steps 2 --lr-warmup-steps 2
refuse 3 '[B8]' mgc-run tiny.plan --data text.txt --steps 2 --min-lr 1
refuse 3 '[E1]' mgc-run tiny.plan --data text.txt --steps 2 --eval-steps 1
refuse 4 'missing.txt' mgc-run tiny.plan --data missing.txt --steps 1
refuse 4 'missing.plan' mgc-run missing.plan --data text.txt --steps 1
head -c 32 text.txt >short.txt
refuse 4 'short.txt' mgc-run tiny.plan --data short.txt --steps 1
head -c 33 text.txt >enough.txt
expect 0 '' mgc-run tiny.plan --data enough.txt --steps 2
finish
