#!/bin/bash
# mgc-run from the command line.
set -uo pipefail
source tools/commands/commands_test_lib.sh

expect 0 '' mgc-run --help
refuse 2 'usage: mgc-run PLAN' mgc-run
for i in $(seq 400); do echo "line $i of a text that is long enough to train on"; done >text.txt
mgc-compile gpt2-tiny --tp 2 --pp 2 --micro-batch-size 1 --global-batch-size 2 --seq-length 32 \
  -o tiny.plan || fail 'no plan to run'
# Zeros as a .npy file: its name, type, shape and bytes.
zeros_npy() {
  local header="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
  printf "\\x93NUMPY\\x01\\x00\\x$(printf %x ${#header})\\x00%s" "$header" >"$1"
  head -c "$4" /dev/zero >>"$1"
}
zeros_npy words.npy '<i4' '4, 32' 512
zeros_npy next.npy '<i8' '4, 32' 1024
run_examples mgc-run
[[ $(wc -l <metrics.jsonl) == 20 ]] || fail 'metrics.jsonl does not hold 20 steps'
grep -q '"traceEvents"' timeline.json || fail 'no timeline'
grep -q 'predicted: pp 1' timeline.json || fail 'no prediction beside what was measured'
grep -q '"name": "rank 3 (tp 1, pp 1)"' timeline.json || fail 'no rank 3'

# Tokens that are made up follow from the seed, are learned, and need no file.
made_up() { mgc-run tiny.plan --mock-data --steps 3 --json "$@" | grep -o '"loss":[0-9.]*'; }
[[ $(made_up) == "$(made_up)" && $(made_up) != "$(made_up --seed 7)" ]] || fail 'seeds mean nothing'
expect 0 '' mgc-run tiny.plan --mock-data --split 9,1 --eval-interval 2 --eval-steps 1 --steps 2
says 'evaluation after step 2'
refuse 2 '--mock-data and --data both give tokens' mgc-run tiny.plan --mock-data --data text.txt --steps 1

# Steps of one micro-batch become steps of two, in one process and in several; the timeline has both.
sizes() {
  mgc-run "$@" tiny.plan --data text.txt --steps 3 --json --trace sizes.json --trace-from 1 \
    --step-batch-size-schedule '0:1 64:2' 2>notes.txt | grep -o '"loss":[0-9.]*'
}
[[ $(sizes) == "$(sizes --nproc 2)" && $(sizes | wc -l) == 3 ]] || fail 'steps of two sizes'
grep -q 'from step 1 on 1 samples a step' notes.txt || fail 'small steps are not told'
grep -q 'from step 3 on 2 samples a step' notes.txt || fail 'a change is not told'
[[ $(grep -c '"name": "0F0"' sizes.json) -gt $(grep -c '"name": "0F1"' sizes.json) ]] ||
  fail 'no timeline of small steps'
refuse 3 'the largest step takes 1 samples, the plan'"'"'s 2 [B10]' \
  mgc-run tiny.plan --data text.txt --steps 1 --step-batch-size-schedule 0:1
refuse 3 'the largest step takes 1 samples, the plan'"'"'s 2 [B10]' \
  mgc-run tiny.plan --check --step-batch-size-schedule 0:1
refuse 2 '`4X:2` is no TOKENS:SAMPLES, as `10B:512` [F4]' \
  mgc-run tiny.plan --data text.txt --steps 1 --step-batch-size-schedule '0:1 4X:2'

# Tokens outside of the vocabulary are found before the first step.
printf '\1\0\2\0\xff\xff%.0s' $(seq 100) >wrong.bin
refuse 4 'wrong.bin: token 2 is 65535, outside the vocabulary of 257 (legal: 0 to 256)' \
  mgc-run tiny.plan --data wrong.bin --steps 1

# Documents that do not see each other need an end of them.
mgc-compile gpt2-tiny --reset-attention-mask --reset-position-ids --micro-batch-size 1 \
  --global-batch-size 2 --seq-length 32 -o masked.plan || fail 'no plan with masks'
expect 0 '' mgc-plan show masked.plan
says '--reset-attention-mask'
refuse 4 'needs the id of the token that ends documents: --eod ID' \
  mgc-run masked.plan --data text.txt --steps 1
expect 0 '' mgc-run masked.plan --data text.txt --eod 10 --eod-mask-loss --steps 2 --json
refuse 2 'llama has no table of positions' \
  mgc-compile llama-tiny --reset-position-ids -o x
refuse 2 '--eod-mask-loss means something with --eod alone' \
  mgc-run masked.plan --data text.txt --eod-mask-loss --steps 1
refuse 4 '--eod 300 is outside the vocabulary of 257' \
  mgc-run masked.plan --data text.txt --eod 300 --steps 1

# A step in bf16 is near one in f32, and is another.
mgc-compile gpt2-tiny --tp 2 --pp 2 --micro-batch-size 1 --global-batch-size 2 --seq-length 32 \
  --bf16 -o narrow.plan || fail 'no plan in bf16'
expect 0 '' mgc-plan show narrow.plan
grep -q -- '--bf16' stdout || fail 'the plan does not say --bf16'
losses() {
  mgc-run "$1" --data text.txt --steps 3 "${@:2}" --json | grep -o '"loss":[0-9.]*' | cut -d: -f2
}
paste <(losses tiny.plan) <(losses narrow.plan) | awk '
  { d = $1 - $2; if (d < 0) d = -d; if (d > 0.02) far = 1; if (d > 0) other = 1 }
  END { exit !(NR == 3 && other && !far) }' || fail 'bf16 is far from f32, or is f32'

# So is one in f16, from a scale that does not overflow; from the usual one steps are left out first,
# and are no failure.
mgc-compile gpt2-tiny --tp 2 --pp 2 --micro-batch-size 1 --global-batch-size 2 --seq-length 32 \
  --fp16 -o half.plan || fail 'no plan in f16'
expect 0 '' mgc-plan show half.plan
says '--fp16'
paste <(losses tiny.plan) <(losses half.plan --initial-loss-scale 1024) | awk '
  { d = $1 - $2; if (d < 0) d = -d; if (d > 0.005) far = 1; if (d > 0) other = 1 }
  END { exit !(NR == 3 && other && !far) }' || fail 'f16 is far from f32, or is f32'
expect 0 'of 24 steps left out: gradients overflowed' mgc-run half.plan --data text.txt --steps 24 --metrics half.jsonl
says 'step 1 | loss'
says '| grad norm nan | loss scale 4294967296 | left out |'
[[ $(grep -c '"left_out":true' half.jsonl) -gt 12 ]] || fail 'too few steps left out'
tail -1 half.jsonl | grep -q '"left_out":false' || fail 'the scale does not fall far enough'
expect 0 '' mgc-run half.plan --data text.txt --steps 2 --loss-scale 256 --json
[[ $(grep -c '"loss_scale":256,"left_out":false' stdout) == 2 ]] || fail 'a fixed scale moves'
refuse 3 'nearest legal: --initial-loss-scale 8' mgc-run half.plan --data text.txt --steps 1 \
  --initial-loss-scale 4 --min-loss-scale 8
also '[B9]'
refuse 3 '--hysteresis is given, and the plan scales no loss [L1]' \
  mgc-run tiny.plan --data text.txt --steps 1 --hysteresis 3
mgc-compile gpt2-tiny --tp 2 --pp 2 --micro-batch-size 1 --global-batch-size 2 --seq-length 32 \
  --optimizer muon --param-group 'head*:lr=0.5' -o muon.plan || fail 'no plan for muon'
expect 0 '' mgc-plan show muon.plan
says '--optimizer muon'
says '--param-group head*:lr=0.5'
expect 0 'saved m/step-00000002' mgc-run muon.plan --data text.txt --steps 2 --muon-momentum 0.9 --adam-beta1 0.8 --save m
refuse 3 '--sgd-momentum is given, and no optimizer of the plan takes it [O1]; nearest legal: --lr,' \
  mgc-run muon.plan --data text.txt --steps 1 --sgd-momentum 0.9 --lion-beta1 0.5
also '--lion-beta1 is given'
also '--adam-eps, --muon-momentum'
expect 1 'of another optimizer' \
  mgc-run tiny.plan --data text.txt --steps 4 --load m
refuse 2 'no MPI launcher has started this process [F8]; nearest legal: --allreduce ordered' \
  mgc-run tiny.plan --data text.txt --steps 1 --allreduce mpi
refuse 2 '[F8]' mgc-run --nproc 2 tiny.plan --data text.txt --steps 1 --allreduce mpi
refuse 2 '--allreduce is Ordered' mgc-run tiny.plan --data text.txt --steps 1 --allreduce Ordered
also 'nearest legal: ordered, mpi'
refuse 2 '--loss-scale, which stays as it is, contradicts --hysteresis [F7]' \
  mgc-run half.plan --data text.txt --steps 1 --loss-scale 8 --hysteresis 3

# Only objects on stdout; the same run twice gives the same numbers.
numbers() { sed 's/"ms":.*//' stdout; }
expect 0 '' mgc-run tiny.plan --data text.txt --steps 3 --seed 7 --json --dump-params p.st \
  --dump-grads g.st
[[ $(grep -c '^{"step":[123],"loss":.*,"grad_norm":.*,"lr":.*,"ms":.*,"tokens_per_second":.*,"predicted_ms":.*,"flops_per_second":.*,"peak_share":.*,"peak_bytes":.*}$' \
  stdout) == 3 ]] || fail 'not three objects'
[[ -s p.st && -s g.st ]] || fail 'no tensors'
numbers >first
expect 0 '' mgc-run tiny.plan --data text.txt --steps 3 --seed 7 --json --workers 1
numbers | cmp - first || fail 'another number of workers, other numbers'
expect 0 '' mgc-run tiny.plan --data text.txt --steps 2 --json --metrics evals.jsonl \
  --eval-interval 2 --eval-tail-samples 5
[[ $(wc -l <stdout) == 3 ]] || fail 'not two steps and an evaluation'
tail -1 stdout | grep -q '^{"step":2,"eval_loss":[0-9.]*,"eval_samples":5,"eval_tokens":160}$' ||
  fail 'no evaluation as JSON'
cmp stdout evals.jsonl || fail 'the metrics differ from what --json prints'
expect 0 '' mgc-run tiny.plan --data text.txt --steps 2 --eval-interval 1 --eval-data text.txt \
  --eval-steps 1
says 'evaluation after step 2 | loss'
# By itself an evaluation says what it says behind a step; documents are those between ends.
expect 0 'saved' mgc-run tiny.plan --data text.txt --steps 2 --eval-interval 2 \
  --eval-data text.txt --save evaluated
tail -1 stdout >behind
expect 0 'step 2, sample 4, of evaluated' mgc-run tiny.plan --load evaluated --eval-only \
  --eval-data text.txt
[[ $(wc -l <stderr) == 1 ]] || fail 'more is told than where it begins'
[[ $(wc -l <stdout) == 1 ]] || fail 'more than an evaluation'
sed 's/ | perplexity [0-9.]*//' stdout | cmp - behind || fail 'evaluated to something else'
printf 'one document.\nthe second one is longer than thirty-two tokens, which is a sample.\n\nlast' \
  >documents.txt
expect 0 'of evaluated' mgc-run tiny.plan --load evaluated --eval-only \
  --eval-data documents.txt --eod 10 --by-document --json
python3 - stdout <<'PY' || fail 'documents are evaluated to something else'
import json, math, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
documents, whole = lines[:-1], lines[-1]
assert [(d["document"], d["eval_tokens"]) for d in documents] == [(0, 13), (1, 67), (3, 4)], lines
mean = sum(d["eval_loss"] * d["eval_tokens"] for d in documents) / 84
assert abs(mean - whole["eval_loss"]) < 1e-9 and whole["eval_tokens"] == 84, lines
assert abs(math.exp(documents[0]["eval_loss"]) - documents[0]["eval_perplexity"]) < 1e-9, lines
PY
# Held back or in files of their own, tensors are evaluated like a text.
zeros_npy later.npy '<i8' '3, 32' 768
expect 0 '' mgc-run tiny.plan --inputs tokens=words.npy --inputs targets=next.npy --steps 1 \
  --eval-interval 1 --eval-inputs tokens=later.npy --eval-inputs targets=later.npy --json
tail -1 stdout >own.json
grep -q '"eval_samples":3,"eval_tokens":96}$' own.json || fail 'not the three samples'
expect 0 '' mgc-run tiny.plan --inputs tokens=words.npy --inputs targets=next.npy --steps 1 \
  --eval-interval 1 --eval-tail-samples 3 --json
tail -1 stdout | cmp - own.json || fail 'the same samples, evaluated to something else'
expect 0 '' mgc-run tiny.plan --data text.txt --steps 4 --lr 0.01 --min-lr 0.001 \
  --lr-warmup-steps 1 --lr-decay-style cosine --lr-decay-steps 3 --weight-decay 0 \
  --adam-beta1 0.8 --adam-beta2 0.95 --adam-eps 1e-6 --clip-grad 0 --json
says '"step":2,'
[[ $(grep -o '"lr":[^,]*' stdout | tail -1) == '"lr":0.001' ]] || fail 'the rate ends elsewhere'

# A timeline is of the last three of so few steps, or as many as are asked for; sends lead to receives.
updates() { grep -c '"name": "0U0", "cat": "action"' "$1"; }
expect 0 '' mgc-run tiny.plan --data text.txt --steps 5 --trace three.json
expect 0 '' mgc-run tiny.plan --data text.txt --steps 5 --trace one.json --trace-steps 1
(($(updates one.json) > 1 && $(updates three.json) - 1 == 3 * ($(updates one.json) - 1))) ||
  fail 'not three steps beside the predicted one'
expect 0 '' mgc-run tiny.plan --data text.txt --steps 5 --trace two.json.gz --trace-from 4
gunzip <two.json.gz >two.json || fail 'not compressed'
(($(updates two.json) - 1 == 2 * ($(updates one.json) - 1))) || fail 'not steps 4 and 5'
(($(grep -c '_F0".*"flow_out": true' one.json) == $(grep -c '_F0".*"flow_in": true' one.json))) ||
  fail 'a send leads nowhere'
grep '"0SEND_F0"' one.json | grep -v '"args": {"micro_batch": 0, "bytes": [0-9]*}' &&
  fail 'a send without bytes'
refuse 2 '--trace-steps is given, and no timeline is asked for [F6]' mgc-run tiny.plan \
  --data text.txt --steps 1 --trace-steps 1

# A run that fails after a step still writes what it recorded.
refuse 1 'cannot write /dev/full' mgc-run tiny.plan --data text.txt --steps 2 \
  --metrics /dev/full --trace failed.json
grep -q '"name": "1U0"' failed.json || fail 'no timeline of a run that failed'

# An earlier run's metrics are kept, and two runs do not share a file.
head -c 100000 text.txt >kept
metrics=(mgc-run tiny.plan --data text.txt --steps 1 --metrics m.jsonl)
expect 0 '' "${metrics[@]}"
cp m.jsonl first
expect 0 'an earlier run are kept as' "${metrics[@]}"
cmp first m.jsonl.1 || fail 'the metrics of the first run are lost'
[[ $(wc -l <m.jsonl) == 1 ]] || fail 'two runs in one file'
exec 9>>m.jsonl
flock -n 9 || fail 'a run that is over holds its file'
cp m.jsonl before
refuse 1 'm.jsonl: another run is writing it' "${metrics[@]}"
exec 9>&-
cmp before m.jsonl || fail 'a refused run has changed the metrics of another'

# A run that goes on from a checkpoint goes on in the file: no step twice.
saved=(mgc-run tiny.plan --data text.txt --save run --metrics on.jsonl --tensorboard events
  --openmetrics run.prom)
expect 75 'stopped after step 2' "${saved[@]}" --steps 4 --exit-interval 2
expect 0 'goes on from step 2' "${saved[@]}" --steps 5
[[ $(sed 's/.*"step":\([0-9]*\),.*/\1/' on.jsonl | tr '\n' ' ') == '1 2 3 4 5 ' ]] ||
  fail 'not steps 1 to 5'
expect 0 'on.jsonl goes on behind step 2: 3 lines of later steps are dropped' \
  "${saved[@]}" --steps 3 --resume 2
[[ $(wc -l <on.jsonl) == 3 ]] || fail 'not steps 1 to 3'
[[ $(find events -name 'events.out.tfevents.*' | wc -l) == 3 ]] || fail 'not an event file a run'
grep -q '^mgc_steps_total 3$' run.prom && [[ $(tail -1 run.prom) == '# EOF' ]] ||
  fail 'no metrics of step 3'
refuse 1 'cannot write /dev/null/x' mgc-run tiny.plan --data text.txt --steps 1 \
  --tensorboard /dev/null/x
expect 1 'stopped after step 1, nothing saved' mgc-run tiny.plan --data text.txt --steps 50 \
  --exit-duration 0.001

# A page about a run, and what is none.
expect 0 '' mgc-report on.jsonl tiny.plan --trace two.json.gz -o run.html
says_in() { grep -q "$2" "$1" || fail "$1 lacks $2"; }
says_in run.html 'data-key="loss" data-step="3"'
says_in run.html 'class="bar forward"'
mkdir folder && cp on.jsonl folder/metrics.jsonl
expect 0 '' mgc-report folder -o folder.html
refuse 4 'text.txt, line 1' mgc-report text.txt -o none.html
refuse 4 'text.txt' mgc-report on.jsonl text.txt -o none.html
refuse 4 'on.jsonl' mgc-report on.jsonl --trace on.jsonl -o none.html
refuse 2 'F6' mgc-report on.jsonl -o on.jsonl
[[ -e none.html ]] && fail 'a page of what is no run'

# A run that diverges says where and ends with 1, or goes on.
wild=(mgc-run tiny.plan --data text.txt --steps 6 --lr 1e6 --clip-grad 0 --weight-decay 1000)
expect 1 'mgc-run: the ' "${wild[@]}" --json --metrics wild.jsonl --trace wild.json --dump-params x
grep -qE 'mgc-run: the (loss|gradient norm) of step [2-5] is (NaN|infinite)' stderr ||
  fail 'no step in the message'
[[ -e x ]] && fail 'parameters of a run that has diverged'
[[ $(wc -l <stdout) == $(grep -oE 'of step [0-9]+' stderr | grep -oE '[0-9]+') ]] ||
  fail 'the run did not end at that step'
cmp stdout wild.jsonl || fail 'the metrics lack steps'
grep -q traceEvents wild.json || fail 'no timeline of a run that failed'
expect 1 'is ' "${wild[@]}" --stop-on-nonfinite
expect 0 'the run goes on' "${wild[@]}" --no-stop-on-nonfinite
[[ $(wc -l <stdout) == 6 && $(wc -l <stderr) == 2 ]] || fail 'not six steps and two notes'
refuse 2 '[F7]' "${wild[@]}" --no-stop-on-nonfinite --stop-on-nonfinite

# Too little memory, or threads: a message, whichever command, and nothing is left.
limited() {
  local kib rc text
  for kib in {16500..20500..250} 22000 26000 30000; do
    # With less than a program needs before its main(), nothing of ours can say anything.
    (ulimit -v $((kib - 250)) && "$1" --version >/dev/null) >/dev/null 2>&1 </dev/null || continue
    rc=0
    text=$( (ulimit -v $kib && "$@" >/dev/null) 2>&1 </dev/null) || rc=$?
    case $rc in
      0) ;;
      1) [[ $text == *'error: '* ]] || fail "no message with $kib KiB: $*" ;;
      127) [[ $text == *'shared libraries'* ]] || fail "exit code 127 with $kib KiB: $*" ;;
      *) fail "exit code $rc with $kib KiB: $*: $text" ;;
    esac
  done
}
# Instrumented programs reserve terabytes.
if (ulimit -v 100000 && mgc-plan --version >/dev/null 2>&1); then
  limited mgc-run tiny.plan --data text.txt --steps 1 --workers 64
  limited mgc-compile gpt2-tiny --tp 2 --pp 2 -o limited.plan
  limited mgc-verify tiny.plan
  limited mgc-plan instructions tiny.plan
  limited mgc-opt --list
  (ulimit -v 60000 && mgc-run tiny.plan --data text.txt --steps 1 --workers 4096 >/dev/null) \
    2>stderr && fail '4096 threads in 60 MB'
  also 'threads'
fi

# A plan far too large for the machine is refused before it is proved.
mgc-compile llama3-405b --tp 8 --pp 16 --global-batch-size 16 --no-verify -o large.plan ||
  fail 'no large plan'
refuse 1 'the ranks of this host need' mgc-run large.plan --data text.txt --steps 1

# A check resolves the plan, of one rank or all, and needs no proof, no data and no such machine.
expect 0 '' mgc-run --check tiny.plan
says 'all 4 ranks | classes 0 1, stages 0 1 | '
expect 0 '' mgc-run --check --rank 3 tiny.plan
says 'rank 3 of 4 | class 1, stage 1 | '
says ' channels, with 3 ranks | arena '
[[ $(wc -l <stdout) == 1 ]] || fail 'not one line'
expect 0 '' mgc-run --check --rank 0 --json tiny.plan
grep -qE '^\{"rank":0,"world_size":4,"classes":\[0\],"stages":\[0\],"calls":[0-9]+,"kernels":[0-9]+,' \
  stdout || fail 'no check as JSON'
grep -qE '"arena_bytes":[0-9]+,"workspace_bytes":[0-9]+\}$' stdout || fail 'no bytes as JSON'
expect 0 '' mgc-run --check --rank 127 large.plan
says 'rank 127 of 128 | class 15, stage 15 | '
refuse 2 '--rank is 4, must be between 0 and 3 of this plan [F3]; nearest legal: 3' \
  mgc-run --check --rank 4 tiny.plan
refuse 2 '--rank is -1, must be between 0 and' mgc-run --check --rank -1 tiny.plan
refuse 2 '--rank is given, and every rank runs [F6]' \
  mgc-run --rank 1 tiny.plan --data text.txt --steps 1
refuse 4 'missing.plan' mgc-run --check missing.plan

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
refuse 3 'nothing to evaluate on [E1]' mgc-run tiny.plan --eval-only
refuse 3 '--eval-only trains nothing, and --steps is given [E1]' mgc-run tiny.plan --eval-only \
  --eval-data text.txt --steps 2
refuse 3 '--eval-only trains nothing, and --exit-interval is given [E1]' mgc-run tiny.plan \
  --eval-only --eval-data text.txt --exit-interval 2
refuse 3 '--by-document and --eval-steps are both given [E1]' mgc-run tiny.plan --eval-only \
  --eval-data text.txt --eod 10 --by-document --eval-steps 1
refuse 3 '--by-document is of an evaluation' mgc-run tiny.plan --eval-only --by-document --eod 10 \
  --eval-inputs tokens=next.npy
refuse 3 '--by-document is of an evaluation' mgc-run tiny.plan --eval-only --eval-data text.txt \
  --by-document
refuse 3 '--eval-inputs and --eval-tail-samples are both given [E1]' mgc-run tiny.plan \
  --data text.txt --steps 2 --eval-interval 1 --eval-tail-samples 1 --eval-inputs tokens=next.npy
refuse 2 '--eval-inputs tokens names no input' mgc-run tiny.plan --data text.txt --steps 2 \
  --eval-interval 1 --eval-inputs tokens
refuse 4 'cannot hold back 4 of 4 samples: from 1 to 3 are possible' mgc-run tiny.plan \
  --inputs tokens=words.npy --inputs targets=next.npy --steps 1 --eval-interval 1 \
  --eval-tail-samples 4
refuse 4 'missing.txt' mgc-run tiny.plan --data missing.txt --steps 1
refuse 2 '[F5]' mgc-run tiny.plan --inputs tokens=words.txt --steps 1
also 'NAME=FILE.npy'
refuse 4 'nothing feeds data input `targets`' mgc-run tiny.plan --inputs tokens=words.npy --steps 1
also 'targets=FILE.npy, or --data FILE'
also 'the model'"'"'s data inputs: `targets` i64[batch=1,seq=32], `tokens` i64[batch=1,seq=32]'
zeros_npy wide.npy '<i8' '4, 33' 1056
zeros_npy half.npy '<f2' '4, 32' 256
zeros_npy few.npy '<f4' '1, 32' 128
refuse 4 'holds i64[samples=4,33]' mgc-run tiny.plan --data text.txt --inputs tokens=wide.npy \
  --inputs targets=half.npy --inputs weights=few.npy --inputs masks=few.npy --steps 1
also 'its type is `<f2`'
also 'holds f32[samples=1,32]; a step takes 2 samples'
also 'the model has no data input `masks`'
refuse 4 'missing.plan' mgc-run missing.plan --data text.txt --steps 1
head -c 32 text.txt >short.txt
refuse 4 'short.txt' mgc-run tiny.plan --data short.txt --steps 1
head -c 33 text.txt >enough.txt
expect 0 '' mgc-run tiny.plan --data enough.txt --steps 2

# The first tensor that is not finite is named with its inputs, by one of several processes too.
for way in '' '--nproc 2'; do
  # shellcheck disable=SC2086
  expect 1 'of its inputs ' "${wild[@]}" $way --check-finite all
  also 'mgc-run: '
  grep -qE 'F[0-9]+, .*: step [2-5]: .* is (NaN|infinite) at \[[0-9, ]*\] \(.*:[0-9]+\)' stderr ||
    fail 'no tensor in the message'
done
refuse 3 '--check-finite all would end at the first overflow, and the plan leaves such steps out [L2]' \
  mgc-run half.plan --data text.txt --steps 1 --check-finite all

# A model that names no layers trains, and on four ranks as on one.
cat >flat.mgc <<'MGC'
graph @flat (
  param %word: f32[vocab=257,embed=8] {init="normal", std=0.1},
  param %up: f32[embed=8,mlp=32] {init="normal", std=0.2},
  param %down: f32[mlp=32,embed=8] {init="normal", std=0.2},
  data %tokens: i64[batch=4,seq=16],
  data %weights: f32[batch=4,seq=16]
) {
  %x = lookup(%word, %tokens)
  %h = matmul(%x, %up) {spec="b s e, e f -> b s f"}
  %a = gelu(%h)
  %y = matmul(%a, %down) {spec="b s f, f e -> b s e"}
  %error = sub(%y, %x)
  %squares = mul(%error, %error)
  %loss = reduce_sum(%squares) {dims=[0,1,2]}
  %count = total(%weights)
  loss "loss" = %loss
  report "count" = %count
}
MGC
for ranks in 1 4; do
  mgc-compile flat.mgc --tp $((ranks / 3 + 1)) --world-size $ranks -o flat.plan || fail 'no flat plan'
  expect 0 '' mgc-run flat.plan --data text.txt --steps 3 --json
  grep -o '"loss":[0-9]*\.[0-9]\{4\}' stdout >flat.$ranks
done
[[ $(wc -l <flat.1) == 3 ]] || fail 'the flat model did not train'
cmp flat.1 flat.4 || fail 'four ranks have other losses than one'
finish
