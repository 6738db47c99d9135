#!/bin/bash
# mgc-compile and mgc-opt from the command line.
set -uo pipefail
source tools/commands/commands_test_lib.sh

# Help, version, nothing at all.
expect 0 '' mgc-compile --help
says 'Examples:'
head -3 stdout | grep -q '^Examples' || fail 'examples do not come first'
expect 0 '' mgc-compile --version
says 'mgc '
refuse 2 'usage: mgc-compile MODEL' mgc-compile

# What comes out.
run_examples mgc-compile
[[ -s tiny.plan && -s tiny.dot ]] || fail 'tiny.plan or tiny.dot is missing'
if command -v dot >/dev/null; then grep -q '<svg' tiny.svg || fail 'tiny.svg is no SVG'; fi
expect 1 'error: no SVG only.svg' env PATH="$tools" "$tools/mgc-compile" gpt2-tiny -o only.plan \
  --svg only.svg
[[ -s only.plan && ! -e only.svg ]] || fail 'not the plan alone where its SVG is missing'
expect 0 '' mgc-compile gpt2-tiny --tensor-model-parallel-size=2 --no-verify -o - --world-size 4
head -c 8 stdout | grep -q MGCPLAN || fail 'no plan on stdout'
expect 0 '' mgc-compile llama-tiny --tp 2 --cluster h100x8 --report json
says '"peak_bytes"'

# A line says what was made, where stdout is free for it.
line='parameters on 4 ranks \(tp 2, dp 2\), step [0-9.]+ [mu]?s predicted on'
four=(mgc-compile gpt2-tiny --tp 2 --world-size 4)
expect 0 '' "${four[@]}" -o line.plan
[[ $(wc -l <stdout) == 1 ]] || fail 'more than a line, or none'
grep -qE "^line.plan: 0.2[0-9] M $line cpu-threads, peak [0-9.]+ MiB a rank$" stdout ||
  fail 'not what was made'
expect 0 '' "${four[@]}" -o line.plan --cluster h100x8
grep -qE "$line h100x8, fits: peak [0-9.]+ MiB of [0-9.]+ GiB a rank$" stdout || fail 'no limit'
expect 0 '' "${four[@]}" -o line.mgc
"${four[@]}" -o - >bytes.plan
"${four[@]}" -o /dev/stdout | cmp - bytes.plan || fail 'more than the plan on stdout'
"${four[@]}" -o line.mgc --dot - | grep -q parameters\ on && fail 'more than the drawing on stdout'
"${four[@]}" -o line.mgc --report json | tail -1 | grep -q parameters\ on &&
  fail 'more than the report on stdout'
expect 0 '' "${four[@]}" --stop-after allocate -o line.mgc
[[ -s stdout ]] && fail 'a plan is said to be made where none is'
mkdir model
cat >model/config.json <<'JSON'
{"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 257, "n_positions": 64}
JSON
expect 0 '' mgc-compile model --pp 2 -o folder.plan
expect 0 '' mgc-compile model/config.json --pp 2 -o file.plan
expect 1 '' mgc-plan diff folder.plan file.plan
[[ $(grep -c '^[^<>]' stdout) == 1 ]] || fail 'folder and file differ in more than the name'

# Graphs as text, in and out.
expect 0 '' mgc-compile gpt2-tiny --tp 2 --dump-dir dump -o a.plan
[[ $(ls dump | tr '\n' ' ') == '00-logical.mgc 01-simplify.mgc 02-differentiate.mgc 03-simplify.mgc 04-scale_loss.mgc 05-narrow.mgc 06-hold_narrow.mgc 07-shard.mgc 08-partition.mgc 09-narrow_sums.mgc 10-recompute.mgc 11-fuse.mgc 12-split_products.mgc 13-overlap.mgc 14-stage.mgc 15-schedule.mgc 16-order.mgc 17-allocate.mgc ' ]] || fail 'not every pass is dumped'
diff <(mgc-compile gpt2-tiny --tp 2 --stop-after allocate) dump/17-allocate.mgc >/dev/null ||
  fail 'stopped with another plan than is dumped'
cp dump/00-logical.mgc model.mgc
expect 0 '' mgc-compile model.mgc --tp 2 -o b.plan
expect 1 '' mgc-plan diff a.plan b.plan
[[ $(grep -c '^[^<>]' stdout) == 1 ]] || fail 'the graph differs from its preset'
expect 0 '' mgc-compile model.mgc --stop-after differentiate -o training.mgc
grep -q '^graph @gpt2 training' training.mgc || fail 'stopped at another level'
refuse 4 'level training' mgc-compile training.mgc -o x
# A graph is written for any batch and, where nothing binds them, for sequences of any length.
sizes='--tp 2 --world-size 6 --micro-batch-size 2 --seq-length 64'
expect 0 '' mgc-compile gpt2-tiny $sizes -o a.plan
expect 0 '' mgc-compile model.mgc $sizes -o b.plan
expect 1 '' mgc-plan diff a.plan b.plan
[[ $(grep -c '^[^<>]' stdout) == 1 ]] || fail 'at other sizes the graph differs from its preset'
expect 0 '' mgc-opt model.mgc --micro-batch-size 3 --seq-length 24
says 'data %tokens: i64[batch=3,seq=24]'
longest=$(sed -n 's/.*\[position=\([0-9]*\),.*/\1/p' model.mgc | head -1)
refuse 3 "has $longest [T2]; nearest legal: sequence length" \
  mgc-compile model.mgc --seq-length $((longest + 1)) -o x
# A graph that names no layers.
cat >flat.mgc <<'MGC'
graph @flat (
  param %w: f32[embed=8,mlp=16] {init="normal", std=0.2},
  data %x: f32[batch=4,embed=8],
  data %weights: f32[batch=4]
) {
  %y = matmul(%x, %w) {spec="b e, e f -> b f"}
  %squares = mul(%y, %y)
  %loss = reduce_sum(%squares) {dims=[0,1]}
  %count = reduce_sum(%weights) {dims=[0]}
  loss "loss" = %loss
  report "count" = %count
}
MGC
expect 0 '' mgc-compile flat.mgc --tp 2 --world-size 4 -o flat.plan
expect 0 '' mgc-plan show flat.plan
says 'losses: means over samples: %count = reduce_sum(%weights f32[batch=4])'
expect 0 '' mgc-compile gpt2-tiny --report text
says 'losses: means over tokens: %head.total = total(%weights f32[batch=1,seq=128])'
expect 0 '' mgc-verify flat.plan
says 'flat: proved for 4 ranks'
expect 0 '' mgc-compile flat.mgc --pp 2 --global-batch-size 8 -o cut.plan
expect 0 '' mgc-verify cut.plan
refuse 3 '[cut_c1]; nearest legal: pp * vp at most 4' mgc-compile flat.mgc --pp 8 \
  --global-batch-size 32 -o x
refuse 3 'there is none to place [P18]' mgc-compile flat.mgc --pp 2 --pipeline-layout 'Et|tL' -o x
# Cuts by name: listed, taken, recorded, told apart.
expect 0 '' mgc-plan cuts flat.mgc --pp 2
grep -q '^y  .*  cut$' stdout || fail 'the cut by cost is not listed'
grep -q '^squares' stdout && fail 'a place is listed that its neighbour is better than'
expect 0 '' mgc-plan cuts flat.mgc --pp 2 --all
grep -q '^squares  *256 B ' stdout || fail 'not all places are listed'
# Of as many samples each data-parallel rank sends its share, as mgc-plan show counts it.
expect 0 '' mgc-plan cuts flat.mgc --pp 2 --world-size 8 --micro-batch-size 1
grep -q '^y  *64 B ' stdout || fail 'the bytes are not those of a rank'
expect 0 '' mgc-compile flat.mgc --pp 2 --world-size 8 --micro-batch-size 1 --global-batch-size 8 \
  --report text
grep -q '^ *0  *64 B .* y$' stdout || fail 'the plan sends other bytes'
expect 4 'nowhere' mgc-plan cuts flat.mgc --pp 2 --cluster nowhere
expect 4 'nowhere' mgc-plan dims flat.mgc --cluster nowhere
expect 0 '' mgc-plan cuts flat.mgc --pp 2 --cuts squares
grep -q '^squares  .*  cut$' stdout || fail 'the cut that is named is not listed'
expect 0 '' mgc-plan cuts flat.mgc --pp 2 --json
says '"behind": "y", "bytes": 256, "before": '
expect 0 '' mgc-compile flat.mgc --pp 2 --global-batch-size 8 --cuts squares -o named.plan
expect 0 '' mgc-verify named.plan
expect 0 '' mgc-plan show named.plan
says ' --cuts squares'
grep -q '^ *0  *256 B .* squares$' stdout || fail 'the cut of the plan is not shown'
expect 0 '' mgc-plan show named.plan --json
says '"behind_stage": 0, "values": ["squares"], "bytes": 256, "before": 0.'
expect 1 '' mgc-plan diff cut.plan named.plan
says 'cuts'
expect 0 '' mgc-compile flat.mgc --pp 2 --vp 2 --schedule interleaved --cuts y,squares,loss \
  --global-batch-size 8 -o named.plan
refuse 3 '--cuts names %squarez, which the graph does not have (did you mean squares?)' \
  mgc-compile flat.mgc --pp 2 --global-batch-size 8 --cuts squarez -o x
also '[cut_c2]; nearest legal: --cuts y (by cost); mgc-plan cuts lists all'
refuse 3 '--cuts names %w, a parameter, which no node makes' mgc-plan cuts flat.mgc --pp 2 --cuts w
refuse 3 '--cuts names %x, a data input, which no node makes' mgc-plan cuts flat.mgc --pp 2 --cuts x
refuse 3 'names %count, which the last node makes' mgc-plan cuts flat.mgc --pp 2 --cuts count
refuse 3 'names %y behind %squares, which is made later' \
  mgc-plan cuts flat.mgc --pp 2 --cuts squares,y
also 'names 2 places, and pp * vp = 2 stages have 1 between them [cut_c2]'
refuse 3 'names %y behind %y, at the same place' mgc-plan cuts flat.mgc --pp 2 --cuts y,y
refuse 3 'pp * vp = 1 stage has 0 between them [cut_c2]; nearest legal: no --cuts' \
  mgc-compile flat.mgc --cuts y -o x
refuse 3 'this model names 4 and is cut between them [P18]' mgc-compile gpt2-tiny --pp 2 --cuts y -o x
refuse 3 'names its layers and is cut between them' mgc-plan cuts gpt2-tiny --pp 2
refuse 2 '--cuts is y,, with an empty name [F5]' mgc-compile flat.mgc --pp 2 --cuts y, -o x
sed 's/"count" = %count/"count" = %squares/' flat.mgc >count.mgc
refuse 4 'count.mgc:7:3: %squares: is the count of tokens, which is a real scalar' \
  mgc-compile count.mgc -o x
expect 0 '' mgc-compile flat.mgc --world-size 3 -o flat3.plan
expect 0 '' mgc-plan dims flat.mgc --world-size 6 --micro-batch-size 5
refuse 3 'no tokens' mgc-compile flat.mgc --seq-length 64 -o x

# Optimizers, and groups of parameters.
refuse 2 'did you mean muon?' mgc-compile gpt2-tiny --optimizer moun -o x
refuse 2 "there is no PATTERN: before the factors; \`rl\` is neither lr nor decay" \
  mgc-compile gpt2-tiny --param-group rl=1 -o x
refuse 3 'no trained parameter is called layers.0.mlp.upp [optimizer_c2]; nearest legal: layers.0.mlp.up' \
  mgc-compile gpt2-tiny --param-group layers.0.mlp.upp:lr=0.1 --param-group 'heads*:decay=0' -o x
also 'is called heads*'
sed 's/%squares = mul(%y, %y)/%rest = slice(%y) {dim=0, begin=1, end=4}\n&/' flat.mgc >rest.mgc
refuse 3 'rest.mgc:7:3: %rest: `batch` is 4 in the graph and cannot be 6: this slice takes' \
  mgc-compile rest.mgc --micro-batch-size 6 -o x
also '[T1]; nearest legal: micro-batch size 4'
sed 's/data %x: f32.batch=/data %x: f32[samples=/' flat.mgc >samples.mgc
refuse 3 '[T4]' mgc-compile samples.mgc -o x
expect 0 'allocate  ' mgc-compile model.mgc --timing --report json -o c.plan
grep -q '^proof  ' stderr || fail 'no time of the proof'
says '"pass": "allocate"'
run_examples mgc-opt
expect 0 '' mgc-opt model.mgc --pass simplify --pass differentiate --pass simplify --pass shard \
  --pass partition --pass stage --pass schedule --pass order
expect 0 '' mgc-opt model.mgc
diff -q stdout model.mgc || fail 'a graph does not print as it was read'
refuse 2 'did you mean simplify?' mgc-opt model.mgc --pass simplyfy
refuse 3 'partition' mgc-opt model.mgc --pass partition
refuse 4 'model/config.json:1:1' mgc-opt model/config.json

# Wrong by itself: 2, whatever else is wrong.
refuse 2 '[F1]' mgc-compile gpt2-tiny --tpp 2 -o x
also 'did you mean --tp?'
refuse 2 '[G0]' mgc-compile gpt2-tiny --tp 0 -o x
refuse 2 '[G0]' mgc-compile gpt2-tiny --pp=-1 -o x
refuse 2 '[F2]' mgc-compile gpt2-tiny --tp two -o x
refuse 2 '[F4]' mgc-compile gpt2-tiny --schedule zb -o x
refuse 2 '[F4]' mgc-compile gpt2-tiny --zero 4 -o x
refuse 2 '[P0]' mgc-compile gpt2-tiny --vp 0 -o x
refuse 2 '[P3]' mgc-compile gpt2-tiny --pp 2 --pipeline-layout 'Etx' -o x
refuse 2 "layout 'Et'x', column 3: ''' is not" mgc-compile gpt2-tiny --pipeline-layout "Et'x" -o x
refuse 2 '[P7]' mgc-compile gpt2-tiny --pp 2 --decoder-first-pipeline-num-layers 0 -o x
refuse 2 '--sequence-parallel takes no value' mgc-compile gpt2-tiny --sequence-parallel=yes -o x
[[ $(grep -c '^error' stderr) == 1 ]] || fail 'another error follows from a misused flag'
refuse 2 '[F7]' mgc-compile gpt2-tiny --zero 0 --use-distributed-optimizer -o x
refuse 2 '[F7]' mgc-compile gpt2-tiny --zero 2 --no-reshard-after-forward -o x
refuse 2 '[F7]' mgc-compile gpt2-tiny --order tp-pp-dp --use-tp-pp-dp-mapping -o x
refuse 2 '[F5]' mgc-compile gpt2-tiny -o x --tp
refuse 2 '[F6]' mgc-compile gpt2-tiny
refuse 2 '[F6]' mgc-compile gpt2-tiny -o x extra
refuse 2 '[F6]' mgc-compile gpt2-tiny -o - --report text
refuse 2 '[B1]' mgc-compile gpt2-tiny --tp 3 --micro-batch-size 0 -o x
also '[M1]'
grep -q 'B2' stderr && fail 'a rule that reads the bad value was applied'

# Combinations: 3, all of them, with what would be legal.
refuse 3 '[G1]' mgc-compile gpt2-tiny --world-size 6 --tp 4 -o x
also 'nearest legal: world size 4, 8'
refuse 3 '[M1]' mgc-compile gpt2-tiny --tp 3 --sequence-parallel --global-batch-size 5 \
  --micro-batch-size 2 -o x
also '[M2]'
also '[M4]'
also '[M7]'
also '[B2]'
refuse 3 "the model's 128 positions [M10]" mgc-compile gpt2-tiny --seq-length 129 -o x
refuse 3 '[G14]' mgc-compile gpt2-tiny --sequence-parallel -o x
refuse 3 '[G10]' mgc-compile gpt2-tiny --vp 2 --schedule interleaved -o x
refuse 3 '[S1]' mgc-compile gpt2-tiny --pp 2 --vp 2 -o x
refuse 3 '[M6]; nearest legal: sequence length 126, 129' mgc-compile gpt2-tiny --cp 3 -o x
refuse 3 '[G12]' mgc-compile gpt2-tiny --world-size 2 --ep 2 -o x
refuse 3 '[P18]' mgc-compile gpt2-tiny --pp 8 -o x
refuse 3 '[P8]' mgc-compile gpt2-tiny --pp 3 --decoder-first-pipeline-num-layers 3 \
  --decoder-last-pipeline-num-layers 2 -o x
refuse 3 '[P3]' mgc-compile gpt2-tiny --pp 2 --pipeline-layout 'Et|tL' -o x
refuse 3 '[P18]' mgc-compile gpt2-tiny --pp 2 --pipeline-layout 'EttttL|' -o x
refuse 3 '[P18]' mgc-compile gpt2-tiny --pp 2 --pipeline-layout '|EttttL' -o x
refuse 3 '[P18]' mgc-compile gpt2-tiny --pp 2 --vp 2 --schedule interleaved \
  --pipeline-layout 'E|tttt|L|' -o x
refuse 3 '[P4]' mgc-compile gpt2-tiny --pp 2 --pipeline-layout 'Ett|ttL' \
  --account-for-loss-in-pipeline-split -o x
refuse 3 '[P13]' mgc-compile gpt2-tiny --pp 2 --vp 2 --schedule interleaved --group-size 3 \
  --global-batch-size 4 -o x
refuse 3 '[S3]' mgc-compile gpt2-tiny --pp 2 --group-size 2 -o x
refuse 3 '[T3]; nearest legal: micro-batch size ' mgc-compile gpt2-tiny -o x \
  --micro-batch-size 1099511627776
refuse 3 '[T3]' mgc-compile gpt2-tiny --micro-batch-size 100000000000 -o x
refuse 3 '[S4]' mgc-compile gpt3-175b --pp 4 --micro-batch-size 10000 \
  --global-batch-size 10240000 --no-verify -o x
refuse 3 '[S2]' mgc-compile gpt2-tiny --global-batch-size 1099511627776 -o x
refuse 3 '[R8]' mgc-compile gpt3-175b --seq-length 128 --cluster cpu-threads -o x
also 'a device of cpu-threads'
refuse 3 '[R8]; more --tp, --pp, --int8 or a smaller --cache-length need less' \
  mgc-compile gpt3-175b --next-token token --cluster cpu-threads -o x
refuse 3 '[R8]; more --tp, --pp or --int8 need less' \
  mgc-compile gpt3-175b --eval-only --seq-length 128 --cluster cpu-threads -o x
expect 0 '' mgc-compile gpt3-175b --seq-length 128 -o unlimited.plan

# More bytes than a plan counts, and more than 64 bits hold, on a machine that has time for them.
cat >vast.mgc <<'MGC'
machine @vast {
  memory 4000000000000000000 bandwidth 1e+18
  overhead 0
  compute f32 1e+22
  tier memory ranks any bandwidth 1e+18 latency 0
}
MGC
for batches in 1024 16384; do
  refuse 3 'pipeline rank 0 needs more than 2^58 bytes [R8]; more --tp' \
    mgc-compile gpt3-175b --world-size 2 --pp 2 --schedule gpipe --micro-batch-size 10000 \
    --global-batch-size "${batches}0000" --cluster vast.mgc --no-verify -o x
done

# A strategy of one's own: compiled, kept in the plan, or refused with a place.
cat >half.mgc <<'MGC'
strategy @half {
  split tp by kv_heads
  gather heads, kv_heads error
  row (batch, seq, embed) home
  row * { batch -> dp }
  row * in "layers.0.*" { mlp -> - }
  row * { heads -> tp, kv_heads -> tp.0, mlp -> tp }
}
MGC
expect 0 '' mgc-compile gpt2-tiny --tp 2 -o default.mgc
expect 0 '' mgc-compile gpt2-tiny --tp 2 --strategy megatron -o named.mgc
cmp -s default.mgc named.mgc || fail 'the default strategy by its name gives another plan'
expect 0 '' mgc-compile gpt2-tiny --tp 2 --strategy half.mgc -o half.plan
expect 1 '' mgc-plan diff default.mgc half.plan
grep -qF '> row * in "layers.0.*" { mlp -> - }' stdout || fail 'diff without rows'
# A model that names no dims is laid out by its classes; the rows that are printed give that plan.
cat >unnamed.mgc <<'EOF'
graph @unnamed layers=1 (
  param %up: f32[16,64] {init="normal", std=0.2},
  param %down: f32[64,16] {init="normal", std=0.2},
  data %x: f32[8,16],
  data %weights: f32[8]
) {
  %h = matmul(%x, %up) {spec="b k, k n -> b n"} layer 0
  %a = gelu(%h) layer 0
  %y = matmul(%a, %down) {spec="b k, k n -> b n"} layer 0
  %rows = reduce_sum(%y) {dims=[1]} layer 0
  %loss = weighted_sum(%rows, %weights) layer 0
  %count = total(%weights) layer 0
  loss "loss" = %loss
  report "count" = %count
}
EOF
expect 0 'note: laid out by dim classes' mgc-compile unnamed.mgc --tp 2 -o classes.plan
mgc-compile unnamed.mgc --tp 2 -o classes.plan 2>&1 | sed -n '/^strategy/,/^}/p' >rows.mgc
expect 0 '' mgc-compile unnamed.mgc --tp 2 --strategy rows.mgc -o rows.plan
expect 0 'by dim classes' mgc-compile unnamed.mgc --tp 2 --strategy classes -o asked.plan
mgc-plan comm classes.plan >classes.txt
mgc-plan comm rows.plan | cmp -s - classes.txt || fail 'the printed rows give another plan'
refuse 4 'no strategy is named classes' mgc-opt model.mgc --pass shard --strategy classes
refuse 3 'tp 5 divides no dim of any parameter' mgc-compile unnamed.mgc --tp 5 -o x
also 'down#1 of 16 [strategy_c5]; nearest legal: tp 4, 8, or --allow-replicated'
expect 0 '' mgc-compile unnamed.mgc --tp 5 --allow-replicated -o whole.plan
expect 0 '' mgc-verify whole.plan
refuse 4 'no strategy is named megatrn (did you mean megatron?)' \
  mgc-compile gpt2-tiny --strategy megatrn -o x
head -c 100 half.mgc >cut.mgc
refuse 4 'cut.mgc:4:27: expected' mgc-compile gpt2-tiny --strategy cut.mgc -o x
printf 'strategy @s {\n  row * { mlp -> xp }\n  store parameters -> dp\n}' >bad.mgc
refuse 4 'bad.mgc:2:18: no axis is named xp; there are tp, cp, dp [strategy_c1]' \
  mgc-compile gpt2-tiny --strategy bad.mgc -o x
also '[strategy_c3]'
: >empty.mgc
refuse 4 'empty.mgc:1:1: expected `strategy`' mgc-compile gpt2-tiny --strategy empty.mgc -o x
refuse 2 '[F6]' mgc-compile gpt2-tiny --strategy half.mgc -o half.mgc

# A request that comes to nothing is refused, unless it may.
cat >mixer.mgc <<'MGC'
graph @mixer layers=1 (
  param %up: f32[channel=16,wide=32] {init="normal", std=0.1, decay=1},
  param %down: f32[wide=32,channel=16] {init="normal", std=0.1, decay=1},
  param %in: f32[raw=8,channel=16] {init="normal", std=0.1, decay=1},
  data %x: f32[batch=8,seq=4,raw=8],
  data %weights: f32[batch=8,seq=4]
) {
  %e = matmul(%x, %in) {spec="b s k, k n -> b s n"} layer embedding
  %h = matmul(%e, %up) {spec="b s k, k n -> b s n"} layer 0
  %y = matmul(%h, %down) {spec="b s k, k n -> b s n"} layer 0
  %z = gelu(%y) layer 1
  %loss = total(%z) layer 1
  %count = total(%weights) layer 1
  loss "loss" = %loss
  report "count" = %count
}
MGC
expect 0 '' mgc-compile mixer.mgc -o mixer.plan
refuse 3 'tp 4 cuts nothing, its ranks would all do the same: megatron gives it to' \
  mgc-compile mixer.mgc --tp 4 --strategy megatron -o x
also 'batch=8, channel=16, raw=8, seq=4, wide=32 [shard_c3]'
refuse 3 '[shard_c4]' mgc-compile mixer.mgc --tp 2 --sequence-parallel -o x
also '[shard_c4]'
refuse 3 '[recompute_c1]' mgc-compile mixer.mgc --recompute selective -o x
refuse 3 '[split_products_c1]' mgc-compile gpt2-tiny --pp 2 --split-products 2 -o x
refuse 2 '[U4]' mgc-compile gpt2-tiny --tp 2 --split-products 0 -o x
refuse 2 '[U4]' mgc-compile gpt2-tiny --tp 2 --split-products 9 -o x
refuse 2 '--bf16 contradicts --fp16' mgc-compile gpt2-tiny --bf16 --fp16 -o x
also '[F7]'
refuse 3 '[narrow_sums_c1]' mgc-compile gpt2-tiny --tp 2 --grad-reduce-dtype bf16 -o x
expect 0 'by dim classes' mgc-compile mixer.mgc --tp 4 --recompute selective --allow-replicated \
  -o mixer.plan
printf 'strategy @wide {\n  row * { batch -> dp, wide -> tp }\n}\n' >wide.mgc
expect 0 '' mgc-compile mixer.mgc --tp 4 --world-size 8 --strategy wide.mgc -o mixer.plan

# Gradients in bf16 over dp: half as many bytes, in a plan that says so.
for type in f32 bf16; do
  expect 0 '' mgc-compile gpt2-tiny --world-size 2 --grad-reduce-dtype $type -o $type.plan
  mgc-plan comm $type.plan --json >$type.json
done
expect 0 '' mgc-plan show bf16.plan
says '--grad-reduce-dtype bf16'
payload() { grep -o '"label": *"gradient"[^}]*"payload[a-z_]*": *[0-9]*' "$1" | grep -o '[0-9]*$'; }
paste <(payload f32.json) <(payload bf16.json) |
  awk '{ far += $1 != 2 * $2 } END { exit !(NR > 0 && !far) }' || fail 'not half of the bytes'

# Context parallelism beside everything else.
expect 0 '' mgc-compile llama-tiny --context-parallel-size 2 --tp 2 --pp 2 --sequence-parallel \
  --zero 1 --world-size 16 --global-batch-size 4 -o context.plan
expect 0 '' mgc-plan comm context.plan
grep -q context stdout || fail 'no collective is said to be for context parallelism'

# ZeRO: levels, groups, and strategies that stop short of what is asked for.
dp=(--world-size 4 --global-batch-size 8)
for zero in '2' '3' '3 --no-reshard-after-forward' '3 --zero-group 2' '2 --zero-group 2'; do
  # shellcheck disable=SC2086  # words are meant
  expect 0 '' mgc-compile llama-tiny "${dp[@]}" --zero $zero -o "zero.plan"
  expect 0 '' mgc-plan show zero.plan
done
says '--zero-group 2'
refuse 3 '[U3]' mgc-compile gpt2-tiny "${dp[@]}" --zero 3 --zero-group 3 -o x
also 'ZeRO group 2, 4'
refuse 3 '[U3]' mgc-compile gpt2-tiny "${dp[@]}" --zero-group 2 -o x
cat >one.mgc <<'MGC'
strategy @one {
  row * { batch -> dp }
  store states -> dp when zero
}
MGC
expect 0 "" mgc-compile gpt2-tiny "${dp[@]}" --zero 1 --strategy one.mgc -o one.plan
refuse 3 '[shard_c5]' mgc-compile gpt2-tiny "${dp[@]}" --zero 2 --strategy one.mgc -o x
also 'no store of gradients'
refuse 3 '[U3]' mgc-compile gpt2-tiny "${dp[@]}" --zero 1 --zero-group 2 --strategy one.mgc -o x

# A graph: every value that a row cuts is held against the axes, all at once.
cat >mlp.mgc <<'MGC'
graph @mlp (
  param %up: f32[embed=6,mlp=64],
  param %down: f32[mlp=64,embed=6],
  param %odd: f32[embed=6,mlp=66],
  data %x: f32[batch=8,embed=6],
  data %weights: f32[batch=8]
) {
  %h = matmul(%x, %up) {spec="b e, e f -> b f"}
  %y = matmul(%h, %down) {spec="b f, f e -> b e"}
  %z = matmul(%y, %odd) {spec="b e, e f -> b f"}
  %l = total(%z)
  %count = total(%weights)
  loss "loss" = %l
  report "count" = %count
}
MGC
refuse 3 '%odd: tp 4 does not divide dim mlp of f32[embed=6,mlp=66]' mgc-compile mlp.mgc --tp 4 -o x
also 'mlp=64, 68, or tp 2, or `uneven mlp` in the strategy'
refuse 3 '%up: tp 3 does not divide dim mlp of f32[embed=6,mlp=64] and of 1 other value' \
  mgc-compile mlp.mgc --tp 3 --micro-batch-size 1 -o x
refuse 3 'than 2^42 [T3]' mgc-compile mlp.mgc --micro-batch-size 1099511627776 -o x

# A sequence by another name: the rows say which dim it is.
cat >places.mgc <<'MGC'
graph @places layers=1 (
  param %up: f32[inputs=6,stream=8],
  data %x: f32[batch=4,my_seq=12,inputs=6],
  data %weights: f32[batch=4]
) {
  %h = matmul(%x, %up) {spec="b s i, i e -> b s e"} layer 0
  %g = gelu(%h) layer 0
  %l = total(%g) layer 0
  %count = total(%weights) layer 0
  loss "loss" = %l
  report "count" = %count
}
MGC
cat >my_rows.mgc <<'MGC'
strategy @my_rows {
  gather my_seq silent
  row (batch, my_seq, stream) home when sequence_parallel { my_seq -> cp*tp }
  row * { batch -> dp, my_seq -> cp, stream -> tp }
}
MGC
expect 0 '' mgc-compile places.mgc --cp 2 --strategy my_rows.mgc -o places.plan
expect 0 '' mgc-compile places.mgc --tp 2 --sequence-parallel --strategy my_rows.mgc -o places.plan
refuse 3 '%x: cp 5 does not divide dim my_seq of f32[batch=4,my_seq=12,inputs=6]' \
  mgc-compile places.mgc --cp 5 --strategy my_rows.mgc -o x
also 'my_seq=10, 15, or cp 4, 6, or `uneven my_seq` in the strategy'
refuse 2 '--tp is 2,0, not a whole number from 1 to' mgc-compile gpt2-tiny --tp 2,0 -o x
also 'nearest legal: 2'

# Without a proof, what is written can be read, and proved later.
expect 0 '' mgc-compile flat.mgc --no-verify -o later.plan
expect 0 '' mgc-plan show later.plan
expect 0 '' mgc-verify later.plan

# Bad models and machines: 4.
refuse 4 'only.plan: this is a plan, not a model' mgc-compile only.plan -o x
expect 0 '' mgc-compile gpt2-tiny -o only.mgc
refuse 4 'only.mgc: this is a plan, not a model' mgc-compile only.mgc -o x
refuse 4 'did you mean gpt2-tiny?' mgc-compile gpt2-tin -o x
echo '{"model_type": "gpt2", "n_layer": 0,' >bad.json
refuse 4 'bad.json:2:1' mgc-compile bad.json -o x
printf 'graph @m logical (\n  data %%x: f32[\n' >bad.mgc
refuse 4 'bad.mgc:' mgc-compile bad.mgc -o x
refuse 4 'h100x8' mgc-compile gpt2-tiny --cluster h100x9 -o x
refuse 4 'bad.mgc:' mgc-compile gpt2-tiny --cluster bad.mgc -o x
refuse 4 '/dev/null' mgc-compile /dev/null -o x

# --auto finds the fastest plan that fits, and says why its neighbours are not the answer.
search=(mgc-compile gpt2-tiny --auto --world-size 4 --global-batch-size 8 --micro-batch-size 2)
expect 0 '' "${search[@]}" --tp 2 -o auto.plan
says 'no other candidate is faster'
prints() { grep -qE -- "$1" stdout || { fail "no '$1' in stdout"; head -20 stdout >&2; }; }
prints '^instead +why not'
grep -qE '^--pp 2 +(at least |about )?[0-9.]+ % slower' stdout || fail 'no neighbour with two stages'
prints '^auto.plan: .* parameters on 4 ranks'
best=$(sed -n 's/^1 .* \(--tp.*\)$/\1/p' stdout | head -1)
[[ $best == '--tp 2 '* ]] || fail "the fastest plan is '$best'"
# What is found is what its flags compile to.
read -ra flags <<<"$best"
expect 0 '' mgc-compile gpt2-tiny --world-size 4 --global-batch-size 8 "${flags[@]}" -o typed.plan
expect 0 '' mgc-plan diff auto.plan typed.plan
expect 0 '' "${search[@]}" --report json -o auto.plan
python3 -c 'import json; r = json.load(open("stdout")); \
  assert r["ranked"][0]["step_ns"] == r["least_bound_ns"], r' || fail 'not JSON of the best plan'
# The page of what was found is written with the plan, or neither; alone; or on stdout.
expect 0 '' "${search[@]}" --tp 2 -o auto.plan --html found.html
says 'no other candidate is faster'
grep -q '<circle class="front"' found.html || fail 'no page of what was found'
expect 0 '' "${search[@]}" --tp 2 --html -
cmp -s stdout found.html || fail 'another page on stdout'
expect 1 'cannot' "${search[@]}" --tp 2 -o x --html missing/found.html
[[ ! -e x ]] || fail 'a plan without its page'
expect 0 '' "${search[@]}" --tp 2 --plot plot.svg
says 'no other candidate is faster'
grep -q '^<svg ' plot.svg && grep -q '<circle class="front"' plot.svg || fail 'no picture'
refuse 2 'none is asked for' mgc-compile gpt2-tiny --plot x
refuse 2 'F6' "${search[@]}" -o both --html both
refuse 2 'makes no plan' mgc-compile gpt2-tiny --estimate-only --html x
expect 0 '' mgc-compile gpt2-tiny --html plan.html -o only.plan
mgc-plan html only.plan | cmp -s - plan.html || fail 'another page than that of mgc-plan html'
refuse 3 'heads are not divisible by tp 3' mgc-compile gpt2-tiny --auto --tp 3 --world-size 3
refuse 3 'no legal plan for 4 ranks' mgc-compile gpt2-tiny --auto --world-size 4 --tp 8
# --estimate-only says whether a plan fits, and what would make it fit.
big=(mgc-compile gpt3-175b --tp 8 --pp 8 --world-size 64 --global-batch-size 64 --micro-batch-size 2
  --bf16)
expect 0 '' "${big[@]}" --cluster a100x8 --estimate-only
prints '^does not fit, .* short: .* of 80.0 GiB, pipeline rank [0-9] at '
prints '^--sequence-parallel '
expect 0 '' "${big[@]}" --cluster a100x8 --sequence-parallel --estimate-only
prints '^fits: '
expect 0 '' "${big[@]}" --cluster a100x8 --estimate-only --report json
python3 -c 'import json; r = json.load(open("stdout")); \
  assert not r["fits"] and len(r["fixes"]) == 3 and \
         all(f["peak"] <= r["device_bytes"] < r["peak"] for f in r["fixes"]), r' ||
  fail 'not JSON of what would fit'
refuse 2 'makes no plan' mgc-compile gpt2-tiny --estimate-only -o x
# Of a model whose dims have no known names its rows are found too.
expect 0 'rows that the search has found' mgc-compile unnamed.mgc --auto --world-size 4 --tp 2 \
  -o unnamed.plan
# Each layer of four may be computed again in a way of its own.
expect 0 '' mgc-compile gpt2-tiny --pp 2 --recompute full,none*3 --pipeline-layout 'Et|t*3L' -o x.plan
refuse 3 'P19' mgc-compile gpt2-tiny --recompute full*2,none -o x
refuse 2 'F4' mgc-compile gpt2-tiny --recompute full*2,some -o x
refuse 2 'none is asked for' mgc-compile gpt2-tiny --auto-budget 4 -o x
refuse 2 'among many' mgc-compile gpt2-tiny --auto --strategy classes
refuse 2 'auto-budget' mgc-compile gpt2-tiny --auto --auto-budget 0

# Outputs that cannot be written: 1, and none of them is left.
refuse 1 'cannot' mgc-compile gpt2-tiny -o x --dot missing/x.dot
echo before >kept
refuse 1 'cannot' mgc-compile gpt2-tiny -o kept --dot missing/x.dot
[[ $(cat kept) == before ]] || fail 'an old file was overwritten'
if [[ -e /dev/full ]]; then
  refuse 1 'stdout' bash -c 'mgc-compile gpt2-tiny --report text >/dev/full'
fi
finish
