#!/bin/bash
# mgc-generate: the same texts from every plan, kept keys or not, and what it refuses.
source tools/commands/commands_test_lib.sh

cat >llama.json <<'END'
{"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": 256, "max_position_embeddings": 32}
END
seq 3000 >text.txt
mgc-compile llama.json --global-batch-size 8 --micro-batch-size 8 -o train.plan >log
mgc-run train.plan --data text.txt --lr 1e-2 --steps 20 --save run >log 2>&1
two=(--global-batch-size 2 --micro-batch-size 2)
mgc-compile llama.json --next-token whole "${two[@]}" -o whole.plan >log
mgc-compile llama.json --next-token whole --tp 2 --pp 2 --world-size 4 "${two[@]}" -o four.plan >log
mgc-compile llama.json --next-token prompt --seq-length 16 "${two[@]}" -o prompt.plan >log
mgc-compile llama.json --next-token token "${two[@]}" -o token.plan >log
mgc-compile llama.json --next-token token --cache-length 20 "${two[@]}" -o short.plan >log
say=(--load run --tokenizer bytes --prompt 12 --prompt $'1\n2\n' --max-new-tokens 12)

# One text.
expect 0 'tokens of prompts' mgc-generate whole.plan "${say[@]}"
cp stdout text
for part in prompt token; do
  [[ $part == prompt ]] && length=(--seq-length 16) || length=()
  mgc-compile llama.json --next-token $part "${length[@]}" "${two[@]}" --tp 2 --pp 2 --world-size 4 \
    -o ${part}4.plan >log
  mgc-compile llama.json --next-token $part "${length[@]}" --global-batch-size 2 \
    --micro-batch-size 1 --world-size 2 -o ${part}2.plan >log
done
for run in 'four.plan' 'four.plan --nproc 4' 'prompt.plan token.plan' 'prompt4.plan token4.plan' \
  'prompt4.plan token4.plan --nproc 2' 'prompt4.plan token4.plan --nproc 4' \
  'prompt2.plan token2.plan --nproc 2'; do
  # shellcheck disable=SC2086
  mgc-generate $run "${say[@]}" 2>log | cmp - text || fail "$run goes on otherwise: $(cat log)"
done
mgc-generate whole.plan "${say[@]}" --temperature 1 --top-k 9 --top-p 0.9 --seed 3 >drawn 2>log
mgc-generate prompt.plan token.plan "${say[@]}" --temperature 1 --top-k 9 --top-p 0.9 --seed 3 \
  2>log | cmp - drawn || fail 'another text is drawn'
cmp -s drawn text && fail 'nothing was drawn'
mgc-generate whole.plan "${say[@]}" --json 2>log | head -1 >json
grep -q '"prompt": "12", "text": ".*", "tokens": \[.*\], "end": "max_new_tokens"}$' json ||
  fail "as JSON: $(cat json)"
expect 0 'tokens of prompts' mgc-generate whole.plan --load run/step-00000020 --prompt-ids 49,50 --max-new-tokens 2
grep -qx '[0-9]*,[0-9]*' stdout || fail "tokens are $(cat stdout)"
printf 12 >prompt.txt
expect 0 'tokens of prompts' mgc-generate whole.plan --load run --tokenizer bytes --prompt-file prompt.txt
mgc-generate whole.plan --load run --tokenizer bytes --prompt 12 2>log | cmp - stdout || fail 'file'
expect 0 'tokens of prompts' mgc-generate prompt.plan token.plan --load run --tokenizer bytes --prompt 12 --json \
  --max-new-tokens 1000
grep -q '"end": "full"}' stdout || fail 'it did not end where there is no room'

# Plans and texts that do not fit.
expect 4 'gives no logits' mgc-generate train.plan "${say[@]}"
expect 4 'goes on by a plan of tokens' mgc-generate prompt.plan "${say[@]}"
expect 4 'keys and values of as many' mgc-generate prompt.plan short.plan "${say[@]}"
expect 4 'its ranks are others' mgc-generate prompt.plan token4.plan "${say[@]}"
expect 4 'a prompt of 17 tokens; the plan takes 1 to 16' mgc-generate prompt.plan token.plan \
  --load run --tokenizer bytes --prompt 01234567890123456
expect 4 '3 requests; the plan takes 2' mgc-generate whole.plan --load run --prompt-ids 1 \
  --prompt-ids 2 --prompt-ids 3
expect 4 'token 256 is none' mgc-generate whole.plan --load run --prompt-ids 256
expect 4 'is no number of a token' mgc-generate whole.plan --load run --prompt-ids 1,x
expect 4 'cannot read nowhere/' mgc-generate whole.plan --load nowhere --prompt-ids 1
expect 4 'cannot read nowhere.json' mgc-generate whole.plan --load run --tokenizer nowhere.json --prompt 1
expect 2 'F6' mgc-generate whole.plan --load run
expect 2 'F6' mgc-generate whole.plan --prompt-ids 1
expect 2 'F7' mgc-generate whole.plan --load run --init run --prompt-ids 1
expect 2 'F6' mgc-generate whole.plan --load run --prompt 1
expect 2 'F7' mgc-generate whole.plan --load run --prompt-ids 1 --top-k 3
expect 3 'mgc-generate one of --next-token' mgc-run whole.plan --data text.txt --steps 1

# Whole numbers are of models that nothing trains; they are read by several processes as by one.
expect 2 '--int8 quantizes' mgc-compile llama.json --int8 -o x.plan
expect 2 'one of both' mgc-compile llama.json --eval-only --next-token whole -o x.plan
mgc-compile llama.json --next-token whole --int8 -o whole8.plan >stdout 2>stderr || fail 'no plan of i8'
mgc-compile llama.json --next-token whole --int8 --tp 2 --world-size 2 -o two8.plan >stdout 2>stderr ||
  fail 'no plan of i8 for two ranks'
say8=(--load run --prompt-ids 1,2,3 --max-new-tokens 5)
mgc-generate whole8.plan "${say8[@]}" >one8 2>stderr || { fail 'i8 says nothing'; cat stderr >&2; }
mgc-generate two8.plan "${say8[@]}" --nproc 2 >two8 2>stderr ||
  { fail 'i8 says nothing in two processes'; cat stderr >&2; }
cmp one8 two8 || fail 'i8 says something else in two processes'

# What cannot be asked.
expect 3 'one micro-batch' mgc-compile llama.json --next-token whole --global-batch-size 2 -o x.plan
expect 2 'F7' mgc-compile llama.json --next-token whole --cache-length 8 -o x.plan
expect 2 'F7' mgc-compile bert-tiny --next-token whole -o x.plan
expect 2 'prompts of 16 tokens, and room for the keys and values of 8 [F7]' mgc-compile llama.json \
  --next-token prompt --cache-length 8 --seq-length 16 -o x.plan
finish
