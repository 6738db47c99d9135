#!/bin/bash
# mgc-tokenize from the command line, and mgc-run on what it writes.
set -uo pipefail
source tools/commands/commands_test_lib.sh

expect 0 '' mgc-tokenize --help
refuse 2 'usage: mgc-tokenize TEXT...' mgc-tokenize
for i in $(seq 400); do echo "line $i of a text that is long enough to train on"; done >text.txt
run_examples mgc-tokenize
cmp -s stdout text.txt || fail 'decoding does not give the text'

# Bytes that are no UTF-8 come back, from every format.
head -c 3000 /bin/sh >any
for format in megatron nanogpt llmc; do
  expect 0 '' mgc-tokenize --tokenizer tokenizer.json --format "$format" any -o "$format"
  says "$format.bin: 1 documents"
  mgc-tokenize --tokenizer tokenizer.json --decode "$format.bin" | cmp -s - any ||
    fail "$format does not give back its bytes"
done
expect 0 '' mgc-tokenize --tokenizer bytes --json any -o bytes
says '"tokens":3000,"type":"u16","vocabulary":257}'
cat any | mgc-tokenize --tokenizer bytes - -o piped >/dev/null || fail 'stdin'
cmp -s bytes.bin piped.bin || fail 'stdin gives other tokens'

# SentencePiece's library has another Protocol Buffers inside than Debian's: never both.
ldd "$(command -v mgc-tokenize)" >loaded
grep -q libsentencepiece loaded || fail 'no SentencePiece'
grep -q libprotobuf loaded && fail 'two versions of Protocol Buffers in one program'
echo 'no model' >some.model
refuse 4 'some.model is no model of SentencePiece' mgc-tokenize --tokenizer some.model text.txt -o x
[[ -z $(find . -name '*.partial') ]] || fail 'a partial file is left'

# A failure leaves what was there.
cp lines.bin before.bin
printf '{"text": "a"}\n{"text": 1}\n' >bad.jsonl
expect 4 'bad.jsonl, line 2: `text` is an integer' \
  mgc-tokenize --tokenizer tokenizer.json --documents jsonl bad.jsonl -o lines
cmp -s before.bin lines.bin || fail 'a failure has changed a file'
[[ -z $(find . -name '.*tmp*') ]] || fail 'a temporary file is left'

refuse 2 'the tokenizer is missing [F6]' mgc-tokenize text.txt -o x
refuse 2 '--train and --decode are both given [F7]' \
  mgc-tokenize --train --decode --vocab-size 300 text.txt -o x
also '--decode prints'
refuse 2 '--pattern means something with --train alone [F7]' \
  mgc-tokenize --tokenizer bytes --pattern llama3 text.txt -o x
refuse 4 'no-such' mgc-tokenize --tokenizer no-such text.txt -o x
refuse 4 'no-such' mgc-tokenize --tokenizer bytes no-such -o x
refuse 3 '--eod <|x|> is no token' \
  mgc-tokenize --tokenizer tokenizer.json --append-eod --eod '<|x|>' text.txt -o x

# Training on token files: the same tokens give the same losses, whatever their format.
mgc-compile gpt2-tiny --tp 2 --micro-batch-size 1 --global-batch-size 2 --seq-length 32 -o tiny.plan ||
  fail 'no plan'
losses() { mgc-run tiny.plan --steps 3 --json "$@" 2>stderr | grep -o '"loss":[0-9.]*'; }
mgc-tokenize --train --vocab-size 257 text.txt -o 257.json
mgc-tokenize --tokenizer bytes text.txt -o pair >/dev/null
mgc-tokenize --tokenizer bytes --documents line text.txt -o many >/dev/null
mgc-tokenize --tokenizer bytes --format nanogpt text.txt -o nano >/dev/null
mgc-tokenize --tokenizer bytes --format llmc text.txt -o llmc >/dev/null
losses --data text.txt >bytes.losses
[[ $(wc -l <bytes.losses) == 3 ]] || fail 'no losses'
for data in pair pair.bin pair.idx nano.bin llmc.bin; do
  losses --data "$data" | cmp -s - bytes.losses || fail "$data trains otherwise than its bytes"
done
losses --data text.txt --shuffle >shuffled.losses
cmp -s shuffled.losses bytes.losses && fail '--shuffle changes nothing'
losses --data pair --shuffle --nproc 2 | cmp -s - shuffled.losses ||
  fail 'two processes shuffle otherwise'
losses --data 0.5 text.txt 0.5 any >blended.losses
[[ $(wc -l <blended.losses) == 3 ]] || fail 'no blend'
cmp -s blended.losses bytes.losses && fail 'a blend changes nothing'
expect 0 '' mgc-run tiny.plan --data many --split 80,20 --eval-interval 2 --steps 2 --json
refuse 4 'pair.bin has 1 documents, of which --split 80,20 gives none to evaluation' \
  mgc-run tiny.plan --data pair --split 80,20 --eval-interval 2 --steps 2
mgc-run tiny.plan --data many --split 80,20 --eval-interval 2 --steps 2 --json >stdout
grep -q eval_loss stdout || fail 'no evaluation on what is split off'

# Ids that the model does not have.
mgc-tokenize --train --vocab-size 600 text.txt -o 600.json 2>/dev/null
head -c 200000 /dev/urandom >noise
mgc-tokenize --train --vocab-size 600 noise -o 600.json
mgc-tokenize --tokenizer 600.json noise -o large >/dev/null
expect 4 'large.bin: token ' mgc-run tiny.plan --data large --steps 300 --json
also 'outside the vocabulary of'

refuse 2 '--split 0,1 is not one to three shares' mgc-run tiny.plan --data pair --split 0,1 --steps 1
refuse 2 '1 of 2 files have a weight [F5]' mgc-run tiny.plan --data 0.5 pair --data nano.bin --steps 1
refuse 2 'is not above 0 and finite [F5]' mgc-run tiny.plan --data 0 pair 1 nano.bin --steps 1
refuse 2 '--split and --eval-data both give' \
  mgc-run tiny.plan --data pair --split 9,1 --eval-data any --eval-interval 1 --steps 1

# 100 GB that are not there: the first steps come at once, in little memory.
truncate -s 100G huge.bin
begin=$(date +%s%N)
mgc-run tiny.plan --data huge.bin --shuffle --steps 2 >huge.out 2>stderr &
pid=$!
peak=0
while kill -0 $pid 2>/dev/null; do
  now=$(awk '/^VmHWM/ { print $2 }' /proc/$pid/status 2>/dev/null)
  ((${now:-0} > peak)) && peak=$now
  sleep 0.01
done
wait $pid || fail 'mgc-run on 100 GB'
ms=$((($(date +%s%N) - begin) / 1000000))
echo "100 GB: $ms ms, $peak KiB at most"
[[ $(grep -c '^step' huge.out) == 2 ]] || fail 'no steps on 100 GB'
((peak < 100000)) || fail "$peak KiB for 100 GB"
rm huge.bin
finish
