#!/bin/bash
# Low-rank adapters: they train as those of peft do, in every layout, and the model stays; what is
# written is what peft reads; merged, the model says the same; what does not fit is told.
source tools/commands/commands_test_lib.sh
adapters=$(dirname "$tools")/tests/adapters
models=$(dirname "$tools")/tests/weights

# The losses of a run's steps.
losses() { sed 's/.*"loss":\([^,]*\),.*/\1/' "$1"; }
# near ALLOWED A B: whether two lists of losses are equal within this share of each.
near() {
  paste "$2" "$3" | awk -v allowed="$1" '
    { d = $1 - $2; if (d < 0) d = -d; if (d > allowed * $2) bad = 1 }
    END { exit bad || NR != 3 }'
}
# The number behind a key of adapter_config.json.
number() { sed -n "s/.*\"$2\": \([0-9.]*\).*/\1/p" "$1/adapter_config.json"; }
targets() { tr -d '\n ' <"$1/adapter_config.json" | sed 's/.*"target_modules":\[\([^]]*\)\].*/\1/; s/"//g'; }

for adapter in "$adapters"/*/; do
  adapter=${adapter%/}
  family=$(basename "$adapter")
  model=$models/$family
  run=(--lr-decay-style constant --sgd-momentum 0 --weight-decay 0 --clip-grad 0 --json)
  for name in tokens targets weights; do
    run+=(--inputs "$name=$model/batch.safetensors")
  done
  begin=("${run[@]}" --init "$model" --init-adapter "$adapter")
  train=("${begin[@]}" --steps 3 --lr 0.1 --min-lr 0.1)
  lora=(--lora-rank "$(number "$adapter" r)" --lora-alpha "$(number "$adapter" lora_alpha)"
    --lora-targets "$(targets "$adapter")")
  compile=("$model" "${lora[@]}" --optimizer sgd --global-batch-size 2)

  # From the model's and the adapter's weights: the losses that torch has, in every layout.
  layouts=('' '--tp 2 --world-size 2' '--tp 2 --pp 2 --world-size 4'
    '--tp 2 --sequence-parallel --world-size 4' '--world-size 2 --zero 1' '--world-size 2 --zero 3')
  for layout in "${layouts[@]}"; do
    # shellcheck disable=SC2086
    mgc-compile "${compile[@]}" $layout -o one.plan >stdout 2>stderr ||
      { fail "$family $layout"; cat stderr >&2; }
    expect 0 'begins with the weights of' mgc-run one.plan "${train[@]}" --dump-params trained.safetensors \
      --dump-grads grads.safetensors
    losses stdout >got
    near 1e-5 got "$adapter/losses.txt" ||
      fail "$family $layout: losses $(tr '\n' ' ' <got), not $(tr '\n' ' ' <"$adapter/losses.txt")"
    # Gradients are those of the adapter, and of nothing else.
    head -c 20000 grads.safetensors | grep -ao '"[a-z0-9_.]*":{"dtype"' | grep -v '\.lora_[ab]"' &&
      fail "$family $layout: gradients of kept parameters"
  done

  # What goes in comes out, in one file that peft has written too.
  mgc-compile "${compile[@]}" -o one.plan >log 2>&1
  expect 0 'begins with' mgc-run one.plan "${begin[@]}" --steps 1 --lr 0 \
    --save "$family-run"
  expect 0 '' mgc-convert "$family-run" --like "$model" --adapter-only -o "$family-adapter"
  cmp "$family-adapter/adapter_model.safetensors" "$adapter/adapter_model.safetensors" ||
    fail "$family: another adapter"
  for key in r lora_alpha; do
    [[ $(number "$family-adapter" $key) == $(number "$adapter" $key) ]] || fail "$family: other $key"
  done
  [[ $(targets "$family-adapter") == $(targets "$adapter") ]] || fail "$family: other targets"
  grep -q "\"fan_in_fan_out\": $([[ $family == gpt2 ]] && echo true || echo false)" \
    "$family-adapter/adapter_config.json" || fail "$family: the weight's layout is not told"

  # Merged it is a model: the loss of the next step, and the words behind a prompt.
  expect 0 '' mgc-convert "$family-run" --like "$model" --dtype f32 -o "$family-merged"
  mgc-compile "$model" --optimizer sgd --global-batch-size 2 -o whole.plan >log 2>&1
  expect 0 'begins with' mgc-run whole.plan "${run[@]}" --init "$family-merged" --steps 1 --lr 0
  losses stdout >merged
  near 1e-6 <(for _ in 1 2 3; do cat merged; done) <(for _ in 1 2 3; do head -1 "$adapter/losses.txt"; done) ||
    fail "$family: merged, the loss is $(cat merged)"
  mgc-compile "$model" --next-token whole -o says.plan >log 2>&1
  mgc-compile "$model" --next-token whole "${lora[@]}" -o adapted.plan >log 2>&1
  words=(--prompt-ids 5,7 --max-new-tokens 3)
  mgc-generate says.plan --init "$family-merged" "${words[@]}" >merged 2>log || fail "$family says nothing"
  mgc-generate adapted.plan --load "$family-run" "${words[@]}" >loaded 2>log || fail "$family says nothing"
  mgc-generate adapted.plan --init "$model" --init-adapter "$adapter" "${words[@]}" >beside 2>log ||
    fail "$family says nothing"
  cmp merged loaded && cmp merged beside || fail "$family: merged it says something else"
done

# A new adapter changes nothing yet, and then trains: three steps on the same samples.
llama=$models/llama
begin=(--lr-decay-style constant --json --init "$llama" --lr 0.05 --min-lr 0.05)
for name in tokens targets weights; do begin+=(--inputs "$name=$llama/batch.safetensors"); done
mgc-compile "$llama" --global-batch-size 6 --world-size 2 -o whole.plan >log 2>&1
mgc-compile "$llama" --global-batch-size 6 --world-size 2 --lora-rank 2 -o lora.plan >log 2>&1
expect 0 'begins with' mgc-run whole.plan "${begin[@]}" --steps 1
losses stdout >whole
expect 0 'begins with' mgc-run lora.plan "${begin[@]}" --steps 3 --save new
losses stdout >new.losses
[[ $(head -1 new.losses) == $(cat whole) ]] || fail 'a new adapter changes the model'
awk 'NR == 1 { first = $1 } END { exit !($1 < first) }' new.losses || fail 'an adapter does not train'
expect 0 '' mgc-convert new --like "$llama" --adapter-only -o new-adapter
[[ $(targets new-adapter) == q_proj,v_proj ]] || fail 'other targets than peft has'
mgc-plan memory lora.plan >memory 2>&1 || fail 'no memory'
grep -q 'does not record' memory && fail 'flags of the model are no flags of the plan'

# A run that goes on needs the same form; another alpha is told.
mgc-compile "$llama" --global-batch-size 6 --world-size 2 --lora-rank 2 --lora-alpha 2 -o other.plan >log 2>&1
expect 0 'option lora-alpha was 8, is 2' mgc-run other.plan "${begin[@]}" --steps 4 --save new

# What does not fit is told, all of it.
refuse 2 '--lora-rank is 0, must be between' mgc-compile "$llama" --lora-rank 0 --lora-alpha -1 \
  --lora-targets q_prj,v_proj,lm_head -o x
also '--lora-alpha is -1, must be between'
also 'llama has no linear layer `q_prj` (did you mean q_proj?)'
also 'llama has no linear layer `lm_head`'
also '[F7]; nearest legal: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, all-linear'
refuse 2 '--lora-alpha is of adapters, and none are asked for [F7]' \
  mgc-compile "$llama" --lora-alpha 4 --lora-targets q_proj -o x
also '--lora-targets is of adapters'
cat >one.mgc <<'END'
graph @one (param %w: f32[embed=4,mlp=4] {init="normal", std=0.2}, data %x: f32[batch=2,embed=4]) {
  %h = matmul(%x, %w) {spec="b e, e f -> b f"}
  %loss = total(%h)
  loss "loss" = %loss
}
END
refuse 2 'a graph in text writes its own adapters' mgc-compile one.mgc --lora-rank 2 -o x
mgc-run whole.plan "${begin[@]}" --steps 1 --save plain >log 2>&1 || fail 'no checkpoint'
refuse 4 'has no adapter; plans of --lora-rank train one' \
  mgc-convert plain --like "$llama" --adapter-only -o x
refuse 4 'gpt2 has no linear layer `q_proj`' \
  mgc-convert new --like "$models/gpt2" --adapter-only -o x
also 'gpt2 has no linear layer `v_proj`'
refuse 4 'is an adapter, and the plan has none' \
  mgc-run whole.plan "${begin[@]}" --steps 1 --init-adapter new-adapter
cp -r "$adapters/llama" edited
sed -i 's/"r": 2/"r": 4/; s/"use_dora": false/"use_dora": true/' edited/adapter_config.json
mgc-compile "$llama" --global-batch-size 2 --lora-rank 2 --lora-alpha 3 -o two.plan >log 2>&1
refuse 4 '`r` is 4, the plan'"'"'s 2' mgc-run two.plan "${begin[@]}" --steps 1 --init-adapter edited
also '`use_dora` is of adapters that mgc has not'
refuse 2 '--init-adapter is given without the model' \
  mgc-run lora.plan --data log --init-adapter new-adapter --steps 1
refuse 2 '--adapter-only is given' mgc-convert new --adapter-only -o x
finish
