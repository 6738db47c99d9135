#!/bin/bash
# Models that transformers has written: they train as there, in every layout; what is written of
# them without training are the same bytes; what does not fit is told.
source tools/commands/commands_test_lib.sh
models=$(dirname "$tools")/tests/weights

# The losses of a run's steps.
losses() { sed 's/.*"loss":\([^,]*\),.*/\1/' "$1"; }
# Whether two lists of losses are equal within 1e-5 of each.
near() {
  paste "$1" "$2" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $2) bad = 1 }
                         END { exit bad || NR != 3 }'
}

for model in "$models"/*/; do
  family=$(basename "$model")
  inputs=()
  for name in $(head -c 2000 "$model/batch.safetensors" | grep -ao '"[a-z]*":{"dtype"' | cut -d'"' -f2)
  do
    inputs+=(--inputs "$name=$model/batch.safetensors")
  done
  run=("${inputs[@]}" --lr-decay-style constant --sgd-momentum 0 --weight-decay 0 --clip-grad 0
    --json --init "$model")
  compile=(--optimizer sgd --global-batch-size 2)
  expect 0 'ignored, they change nothing here' mgc-compile "$model" "${compile[@]}" -o one.plan
  expect 0 'begins with the weights of' mgc-run one.plan "${run[@]}" \
    --steps 3 --lr 0.1 --min-lr 0.1
  losses stdout >one.losses
  near one.losses "$model/losses.txt" ||
    fail "$family: losses $(tr '\n' ' ' <one.losses), not $(tr '\n' ' ' <"$model/losses.txt")"

  # Import and export without training: the same bytes, in one file and in several.
  expect 0 'parameters' mgc-convert "$model" -o "$family-start"
  expect 0 '' mgc-convert "$family-start" --like "$model" -o "$family-out"
  cmp "$family-out/model.safetensors" "$model/model.safetensors" || fail "$family: other weights"
  cmp "$family-out/config.json" "$model/config.json" || fail "$family: another configuration"
  expect 0 '' mgc-convert "$family-start" --like "$model" --max-shard-size 4KB -o "$family-shards"
  (($(ls "$family-shards"/*.safetensors | wc -l) > 2)) || fail "$family: shards are few"
  expect 0 'parameters' mgc-convert "$family-shards" -o "$family-again"
  cmp "$family-start"/step-00000000/parameters.safetensors \
    "$family-again"/step-00000000/parameters.safetensors || fail "$family: shards are others"
  # What is exported in f32 trains the same.
  expect 0 '' mgc-convert "$family-start" --like "$model" --dtype f32 -o "$family-f32"
  grep -q '"dtype": "float32"' "$family-f32/config.json" || fail "$family: the type is not told"

  # It goes on with texts as it does there, with keys and values kept and without.
  if [[ -e $model/texts.txt ]]; then
    two=(--global-batch-size 2 --micro-batch-size 2)
    mgc-compile "$model" --next-token whole "${two[@]}" -o whole.plan >stdout 2>stderr
    mgc-compile "$model" --next-token prompt --tp 2 --world-size 2 "${two[@]}" -o prompt.plan >stdout 2>stderr
    mgc-compile "$model" --next-token token --tp 2 --world-size 2 "${two[@]}" -o token.plan >stdout 2>stderr
    ids=()
    while read -r prompt _; do ids+=(--prompt-ids "$prompt"); done <"$model/texts.txt"
    for plans in whole.plan 'prompt.plan token.plan'; do
      # shellcheck disable=SC2086
      mgc-generate $plans --init "$model" "${ids[@]}" --max-new-tokens 100 >said 2>stderr
      (($(wc -l <said) == 2)) || { fail "$family: $plans says nothing"; cat stderr >&2; }
      # It may say more: the last token has no place any more, others no clear advantage.
      cut -d' ' -f2 "$model/texts.txt" >expected
      while read -r wanted <&3 && read -r got <&4; do
        [[ $got == "$wanted"* ]] || fail "$family: $plans goes on with $got, not $wanted"
      done 3<expected 4<said
    done
  fi

  # Every rank of every layout begins with the same numbers.
  still=("${run[@]}" --lr 0 --steps 1)
  mgc-run one.plan "${still[@]}" --dump-params one.safetensors >stdout 2>stderr || fail "$family"
  layouts=('--tp 2 --world-size 2' '--tp 2 --pp 2 --world-size 4')
  case $family in
    gpt2 | llama | phi3 | gpt_neox)
      layouts+=('--world-size 2 --zero 1' '--world-size 2 --zero 3'
        '--tp 2 --sequence-parallel --world-size 4')
      ;;
  esac
  for layout in "${layouts[@]}"; do
    # shellcheck disable=SC2086
    mgc-compile "$model" "${compile[@]}" $layout -o several.plan >stdout 2>stderr ||
      { fail "$family $layout"; cat stderr >&2; }
    mgc-run several.plan "${still[@]}" --dump-params several.safetensors >stdout 2>stderr ||
      { fail "$family $layout"; cat stderr >&2; }
    cmp one.safetensors several.safetensors || fail "$family $layout: other weights"
  done
done

# In processes, too; a checkpoint counts more than what a run began with.
gpt2=$models/gpt2
text=(--data text.txt --lr 1e-2 --json)
seq 300 | tr '0-9' '\001-\012' | tr '\n' '\013' >text.txt
mgc-compile "$gpt2" --tp 2 --pp 2 --world-size 4 --global-batch-size 4 -o four.plan >log 2>&1
mgc-run four.plan "${text[@]}" --steps 2 --init "$gpt2" --save run 2>log | cut -d, -f1-3 >here
mgc-run --nproc 2 four.plan "${text[@]}" --steps 2 --init "$gpt2" 2>log | cut -d, -f1-3 >there
cmp here there || fail 'two processes begin elsewhere'
expect 0 'are not read' mgc-run four.plan "${text[@]}" --steps 3 --init "$gpt2" --save run

# A trained model goes out; a tokenizer's files go along, and the table's padding does not.
cp -r "$gpt2" with-tokenizer
echo '{"model": {}}' >with-tokenizer/tokenizer.json
mgc-compile "$gpt2" --tp 2 --world-size 2 --global-batch-size 4 --make-vocab-size-divisible-by 64 \
  -o padded.plan >log 2>&1
mgc-run padded.plan "${text[@]}" --steps 2 --init "$gpt2" --save padded >log 2>&1
expect 0 '' mgc-convert padded --like with-tokenizer -o out
cmp out/tokenizer.json with-tokenizer/tokenizer.json || fail 'no tokenizer'
cmp -s out/model.safetensors "$gpt2/model.safetensors" && fail 'nothing was trained'
(($(stat -Lc %s out/model.safetensors) == $(stat -Lc %s "$gpt2/model.safetensors"))) ||
  fail 'the padding is written'
mgc-run padded.plan "${text[@]}" --steps 1 --init out >log 2>&1 || fail 'what is written is not read'

# What does not fit is told, all of it, before anything is run.
mgc-compile gpt2-tiny --global-batch-size 2 -o tiny.plan >log 2>&1
refuse 4 'tensor embedding.position has shape [8,16], the plan' \
  mgc-run tiny.plan "${text[@]}" --steps 1 --init "$gpt2"
also 'tensor layers.0.attention.q has shape'
refuse 4 'is of mistral, and the plan of gpt2' mgc-run four.plan "${text[@]}" --steps 1 \
  --init "$models/mistral"
mkdir mixed
cp "$gpt2/config.json" mixed
cp "$models/llama/model.safetensors" mixed
refuse 4 'tensor transformer.h.0.attn.c_attn.weight is missing' \
  mgc-run four.plan "${text[@]}" --steps 1 --init mixed
refuse 4 'config.json' mgc-run four.plan "${text[@]}" --steps 1 --init nowhere
refuse 4 'has no tensor head' mgc-convert run --like "$models/llama" -o x
refuse 1 'is there' mgc-convert run --like "$gpt2" -o out
refuse 2 '--max-shard-size 5XB is no size' mgc-convert run --like "$gpt2" -o x --max-shard-size 5XB
refuse 2 '--like is given, and what is read is no checkpoint' \
  mgc-convert "$gpt2" --like "$gpt2" -o x
refuse 2 '--init and --load are both given' \
  mgc-run four.plan "${text[@]}" --steps 1 --init "$gpt2" --load run
finish
