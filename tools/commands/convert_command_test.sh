#!/bin/bash
# mgc-convert: weights out of checkpoints and back, in every type; what it refuses.
source tools/commands/commands_test_lib.sh

seq 3000 >text.txt
mgc-compile gpt2-tiny --seq-length 32 --world-size 4 --global-batch-size 8 --tp 2 -o tp.plan >log
mgc-compile gpt2-tiny --seq-length 32 --world-size 4 --global-batch-size 8 --pp 2 --zero 1 \
  -o pp.plan >log
run=(--data text.txt --lr 1e-2 --json)
mgc-run tp.plan "${run[@]}" --steps 3 --save saved --dump-params dumped.safetensors >log 2>&1

# What a run dumps; and a beginning that is where the run stood, but for moments and counts.
expect 0 '' mgc-convert saved -o f32.safetensors
says 'wrote '
cmp f32.safetensors dumped.safetensors || fail 'weights are not what the run has dumped'
expect 0 '' mgc-convert f32.safetensors -o start
mgc-ckpt verify start >log || fail 'what is made does not verify'
grep -q 'step-00000000: whole' log || fail "it is $(cat log)"
mgc-ckpt diff start saved >log
grep -q '^parameters' log && fail 'its parameters are others'
expect 0 'goes on from step 0, sample 0, of start' mgc-run pp.plan "${run[@]}" --steps 1 --load start \
  --save started --dump-params stepped.safetensors
grep -q option stderr && fail 'options that nothing was trained with have changed'
# Of what a run would have begun with nothing is left; this model draws nothing else from its seed.
cat >llama.json <<'END'
{"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
 "intermediate_size": 64, "vocab_size": 257, "max_position_embeddings": 32}
END
mgc-compile llama.json -o llama.plan >log
mgc-run llama.plan "${run[@]}" --steps 1 --save llama >log 2>&1
mgc-convert llama -o llama.safetensors >log
mgc-convert llama.safetensors -o llama-start >log
for seed in 1 9; do
  mgc-run llama.plan "${run[@]}" --steps 2 --load llama-start --seed $seed 2>log |
    cut -d, -f1-3 >of-$seed
done
cmp of-1 of-9 || fail 'with another seed it begins elsewhere'

for type in bf16 f16; do
  expect 0 '' mgc-convert saved/step-00000003 -o $type.safetensors --dtype $type
  (($(stat -c %s $type.safetensors) * 2 < $(stat -c %s f32.safetensors) + 20000)) ||
    fail "$type is $(stat -c %s $type.safetensors) bytes"
  expect 0 '' mgc-convert $type.safetensors -o from-$type
  expect 0 '' mgc-convert from-$type -o again.safetensors --dtype $type
  cmp $type.safetensors again.safetensors || fail "$type: not the same weights"
done

# What does not go together, is damaged or fits no plan.
refuse 2 '-o is not given' mgc-convert saved
refuse 2 'are both folders' mgc-convert saved -o there
refuse 2 'are both files' mgc-convert f32.safetensors -o there.safetensors
refuse 2 '--dtype is given, and a checkpoint holds f32' mgc-convert f32.safetensors -o there \
  --dtype bf16
refuse 4 'cannot read nowhere' mgc-convert nowhere -o there.safetensors
refuse 1 'saved has checkpoints' mgc-convert f32.safetensors -o saved
head -c 5000 f32.safetensors >cut.safetensors
refuse 4 'cut.safetensors' mgc-convert cut.safetensors -o there
cp -r saved bad
printf x | dd of=bad/step-00000003/parameters.safetensors bs=1 seek=9000 conv=notrunc 2>log
refuse 4 'is damaged' mgc-convert bad -o there.safetensors
[[ ! -e there.safetensors ]] || fail 'a file of damaged weights is there'
expect 1 'which the plan has' mgc-run llama.plan "${run[@]}" --steps 1 --load start
finish
