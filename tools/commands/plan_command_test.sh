#!/bin/bash
# mgc-plan from the command line.
set -uo pipefail
source tools/commands/commands_test_lib.sh

expect 0 '' mgc-plan --help
says 'mgc-plan show tiny.plan'
expect 0 '' mgc-plan --version
refuse 2 'Usage: mgc-plan' mgc-plan
refuse 2 'did you mean show?' mgc-plan shw

mgc-compile gpt2-tiny --tp 2 --pp 2 --world-size 8 --global-batch-size 8 -o tiny.plan ||
  fail 'no plan to look at'
cp tiny.plan a.plan
cp tiny.plan b.plan
for view in show memory comm instructions trace dot schedule groups; do
  run_examples mgc-plan "$view"
  expect 0 '' mgc-plan "$view" --help
  "mgc-plan" "$view" tiny.plan >text 2>/dev/null || fail "$view of a plan"
  [[ -s text ]] || fail "$view prints nothing"
  "mgc-plan" "$view" tiny.plan --json >json 2>/dev/null || fail "$view --json"
  head -c 1 json | grep -q '{' || fail "$view --json is no object"
  "mgc-plan" "$view" - <tiny.plan 2>/dev/null | cmp - text || fail "$view of stdin differs"
  refuse 4 'missing.plan' mgc-plan "$view" missing.plan
  refuse 2 '[F1]' mgc-plan "$view" tiny.plan --jsn
done
refuse 2 '[F6]' mgc-plan show --json

# Kernels of a run beside limits.
seq 2000 >numbers.txt
mgc-run tiny.plan --data numbers.txt --steps 2 --trace timeline.json >/dev/null || fail 'no run'
run_examples mgc-plan roofline
expect 0 '' mgc-plan roofline tiny.plan timeline.json
says 'kernels: '
says 'of which cpu-threads needs '
says 'attention_grad '
mgc-plan trace tiny.plan >predicted.json
refuse 4 'no measured instruction' mgc-plan roofline tiny.plan predicted.json
mgc-compile gpt2-tiny --bf16 -o other.plan || fail 'no other plan'
refuse 4 'which the plan lacks' mgc-plan roofline other.plan timeline.json
refuse 4 'no timeline' mgc-plan roofline tiny.plan <(echo '{}')
refuse 4 'h100x9' mgc-plan roofline tiny.plan timeline.json --cluster h100x9
refuse 2 '[F6]' mgc-plan roofline tiny.plan
refuse 2 '[F6]' mgc-plan show tiny.plan tiny.plan

# Why a value lies where it does.
run_examples mgc-plan explain
expect 0 '' mgc-plan explain tiny.plan 'layers.*.mlp.down'
says '%layers.*.mlp.down: f32[mlp=256,embed=64] @m[tp,-], 4 times param'
says '  tp cuts mlp: row * { mlp -> tp }'
expect 0 '' mgc-plan explain tiny.plan 'layers.3.mlp.down.matmul' --json
python3 -c 'import json; (v,) = json.load(open("stdout"))["values"]; \
  assert v["count"] == 1 and v["layout"] == "@m[dp,-,-]+tp" and len(v["reasons"]) == 2 and \
         v["follows"] == ["forward: all-reduce over tp, g to @m[dp,-,-] for add"], v' ||
  fail 'not JSON of a value'
refuse 1 'did you mean embedding.word?' mgc-plan explain tiny.plan embedding.wrd
refuse 4 'missing.plan' mgc-plan explain missing.plan x
refuse 2 '[F6]' mgc-plan explain tiny.plan

# From flags alone, as Megatron and PyTorch have them.
expect 0 '' mgc-plan groups --world-size 8 --tp 2 --pp 2 --json
says '"dp": [[0, 2], [1, 3], [4, 6], [5, 7]]'
says '"embedding": [[0, 4], [1, 5], [2, 6], [3, 7]]'
cp stdout groups
expect 0 '' mgc-plan groups tiny.plan --json
cmp stdout groups || fail 'groups of a plan differ from those of its flags'
expect 0 '' mgc-plan groups --world-size 8 --tp 2 --cp 2 --json
expect 0 '' mgc-plan groups --world-size 16 --tp 4 --ep 2 --etp 2 --json
refuse 3 '[G1]' mgc-plan groups --world-size 6 --tp 4
refuse 3 '[G2]' mgc-plan groups --world-size 8 --tp 2 --ep 3
refuse 3 '[G3]' mgc-plan groups --world-size 8 --tp 2 --order dp-pp
refuse 2 '[G0]' mgc-plan groups --world-size 8 --tp 0
refuse 2 '[G0]' mgc-plan groups --world-size 8 --order tp-tp
refuse 2 '[F6]' mgc-plan groups tiny.plan --tp 2
expect 0 '' mgc-plan schedule --pp 2 --micro-batches 3
printf '0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n' | cmp - stdout || fail '1f1b'
expect 0 '' mgc-plan schedule --pp 2 --vp 2 --micro-batches 2 --schedule interleaved
says '0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1'
refuse 3 '[G10]' mgc-plan schedule --pp 1 --vp 2 --micro-batches 2 --schedule interleaved
refuse 3 '[S1]' mgc-plan schedule --pp 2 --vp 2 --micro-batches 2
refuse 3 '[P13]' mgc-plan schedule --pp 4 --vp 2 --micro-batches 8 --schedule interleaved \
  --group-size 3
refuse 2 '[S0]' mgc-plan schedule --pp 2 --micro-batches 0
refuse 2 '[F4]' mgc-plan schedule --pp 2 --micro-batches 2 --schedule 1f2b
refuse 2 '[F2]' mgc-plan schedule --pp two --vp 2
grep -q '\[G10\]' stderr && fail 'a rule that reads the bad value was applied'

# What is alike is folded, and --all unfolds it.
mgc-compile gpt3-175b --tp 8 --pp 16 --world-size 1024 --global-batch-size 512 --no-verify \
  -o large.plan >large.txt || fail 'no large plan'
for view in show comm schedule groups; do
  expect 0 '' mgc-plan "$view" large.plan
  (($(wc -l <stdout) <= 70)) || fail "$view of a large plan: $(wc -l <stdout) lines"
  cp stdout folded
  expect 0 '' mgc-plan "$view" large.plan --all
  (($(wc -c <stdout) > 2 * $(wc -c <folded))) || [[ $view == show ]] || fail "$view --all is short"
done
expect 0 '' mgc-plan comm large.plan
says '0-15  forward   layers 0-95  all-reduce      tp'
expect 0 '' mgc-plan schedule large.plan
says 'pp 1-13 (p = pp): {16-p} x ('
expect 0 '' mgc-plan groups large.plan
says '128 x ([0-7]) +8'
expect 0 'note: stages are boxes' mgc-plan dot large.plan -o large.dot
expect 0 '' mgc-plan memory large.plan --advice-seconds 0
if command -v dot >/dev/null; then
  size=$(dot -Tsvg large.dot | sed -n 's/.*<svg width="\([0-9]*\)pt" height="\([0-9]*\)pt".*/\1 \2/p')
  ((${size% *} <= 1600 && ${size#* } <= 1000)) || fail "the overview has $size points"
fi

# The page.
run_examples mgc-plan html
mgc-plan html - <tiny.plan | cmp - tiny.html || fail 'a page of stdin differs'
refuse 4 'missing.plan' mgc-plan html missing.plan -o x
refuse 2 '[F6]' mgc-plan html tiny.plan -o tiny.plan
expect 0 '' mgc-plan html large.plan -o large.html
expect 0 '' mgc-plan memory large.plan --json --advice-seconds 0
for peak in $(grep -o '"peak": [0-9]*' stdout | grep -o '[0-9]*'); do
  grep -q "data-bytes=\"$peak\"" large.html || fail "no peak of $peak in the page"
done
if command -v python3 >/dev/null; then
  for page in tiny.html large.html; do
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' $page ||
      fail "$page is no XML"
  done
fi

# Text and bytes are the same plan.
expect 0 '' mgc-compile gpt2-tiny --tp 2 --pp 2 --world-size 8 --global-batch-size 8 -o tiny.mgc
expect 0 '' mgc-plan diff tiny.plan tiny.mgc
run_examples mgc-plan diff
expect 0 '' mgc-plan diff tiny.plan tiny.plan --json
says '"same": true'
mgc-compile gpt2-tiny --tp 2 --pp 2 --world-size 8 --global-batch-size 16 -o other.plan
expect 1 '' mgc-plan diff tiny.plan other.plan
says 'option --global-batch-size'
expect 2 'missing.plan' mgc-plan diff tiny.plan missing.plan
expect 2 '[F6]' mgc-plan diff tiny.plan

# The drawing.
expect 0 'note: ' mgc-plan dot tiny.plan -o tiny.dot --svg tiny.svg
[[ $(grep -c 'shape=' tiny.dot) -le 300 ]] || fail 'more than 300 nodes'
mgc-compile llama-tiny --pp 4 -o four.plan --dot four.dot 2>/dev/null || fail 'four stages'
for expand in none layers stages all; do
  plan=tiny
  [[ $expand == stages ]] && plan=four
  mgc-plan dot "$plan.plan" --expand "$expand" >"$expand.dot" 2>/dev/null || fail "--expand $expand"
  cmp -s "$plan.dot" "$expand.dot" && fail "--expand $expand changes nothing"
  if command -v dot >/dev/null; then
    timeout 5 dot -Tsvg "$expand.dot" >/dev/null || fail "dot on --expand $expand"
  fi
done
rm -f tiny.svg
rm -f tiny.dot
expect 1 'error: no SVG tiny.svg: Graphviz' env PATH="$tools" "$tools/mgc-plan" dot tiny.plan \
  -o tiny.dot --svg tiny.svg
[[ -e tiny.svg ]] && fail 'an SVG without dot'
[[ -s tiny.dot ]] || fail 'no drawing where only its SVG is missing'

# The dims of a model, not of a plan.
mgc-plan dims gpt2-tiny --cluster h100x8 | grep -q '^mlp ' || fail 'no class mlp'
mgc-plan dims gpt2-tiny --cluster h100x8 | grep -q '^(none) ' || fail 'no step without a cut'
mgc-plan dims gpt2-tiny --tp 4 --json | grep -q '"uncut"' || fail 'no step without a cut in JSON'
mgc-plan dims gpt2-tiny --tp 4 --json | grep -q '"class": "mlp"' || fail 'no class mlp in JSON'
refuse 4 'this is a plan, not a model' mgc-plan dims tiny.plan
refuse 2 'MODEL' mgc-plan dims --json
refuse 2 'no strategy' mgc-plan dims gpt2-tiny --strategy megatron
cat >packed.mgc <<'END'
graph @packed logical (
  param %w: f32[8,24],
  param %spare: f32[8],
  data %x: f32[batch=8,8]
) {
  %ab = matmul(%x, %w) {spec="b k, k n -> b n"}
  %a = slice(%ab) {dim=1, begin=0, end=12}
  %b = slice(%ab) {dim=1, begin=12, end=24}
  %y = mul(%a, %b)
  %n = total(%y)
  loss "loss" = %n
  report "count" = %n
}
END
for command in dims 'cuts --pp 2'; do
  # shellcheck disable=SC2086  # words are meant
  expect 0 'note: parameters that are read in parts become these' mgc-plan $command packed.mgc
  grep -qF 'note: no loss has a gradient of %spare' stderr || fail "no note of %spare: $command"
done

# Damaged plans: 4, never a crash.
head -c 100 tiny.plan >cut.plan
refuse 4 'cut.plan' mgc-plan show cut.plan
printf 'MGCPLAN\n' >short.plan
refuse 4 'short.plan' mgc-plan show short.plan
{ head -c 200 tiny.plan; printf 'X'; tail -c +202 tiny.plan; } >damaged.plan
refuse 4 'damaged.plan' mgc-plan show damaged.plan
{ printf 'MGCPLAN\n\377\0\0\0'; tail -c +13 tiny.plan; } >version.plan
refuse 4 'version' mgc-plan show version.plan
refuse 4 '/dev/null' mgc-plan show /dev/null
finish
