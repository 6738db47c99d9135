#!/bin/bash
# mgc-ckpt: what it shows, compares, checks and removes.
source tools/commands/commands_test_lib.sh

seq 2000 >text.txt
mgc-compile gpt2-tiny --seq-length 32 --tp 2 --world-size 2 --global-batch-size 8 -o p.plan >log
mgc-compile gpt2-tiny --seq-length 32 --pp 2 --world-size 2 --global-batch-size 8 -o q.plan >log
mgc-run p.plan --data text.txt --steps 3 --save checkpoints --save-interval 1 >log 2>&1
mgc-run q.plan --data text.txt --steps 1 --lr-decay-steps 3 --save other >log 2>&1

expect 0 '' mgc-ckpt show checkpoints
[[ $(head -1 stdout) == 'step 3 | sample 24 | 2.6 MiB' && $(wc -l <stdout) == 3 ]] || fail "$(cat stdout)"
expect 0 '' mgc-ckpt show checkpoints/step-00000002
says 'option lr: 0.001'
says 'data text: 8893 tokens in 277 samples of 32, hash '
says 'first_moments.safetensors: 68 tensors, 224704 elements'
expect 0 '' mgc-ckpt show checkpoints/step-00000002 --json
cmp -s stdout checkpoints/step-00000002/manifest.json || fail 'not the manifest'
refuse 4 'cannot read none/manifest.json' mgc-ckpt show none

# Other plans round otherwise; the options are the same.
expect 1 '' mgc-ckpt diff checkpoints/step-00000001 other/step-00000001
says 'parameters.safetensors: embedding.word: other values'
grep -q '^option\|^data\|^state' stdout && fail "$(cat stdout)"
expect 1 '' mgc-ckpt diff checkpoints/step-00000001 checkpoints
says 'state step: 1 | 3'
expect 0 '' mgc-ckpt diff checkpoints/step-00000001 checkpoints/step-00000001
refuse 2 'cannot read none/manifest.json' mgc-ckpt diff none checkpoints

expect 0 '' mgc-ckpt verify checkpoints other/step-00000001
[[ $(grep -c ': whole, 2.6 MiB$' stdout) == 4 ]] || fail "$(cat stdout)"
printf '\x55' | dd of=checkpoints/step-00000002/parameters.safetensors bs=1 seek=200000 conv=notrunc \
  2>/dev/null
expect 4 'checkpoints/step-00000002/parameters.safetensors: tensor ' mgc-ckpt verify checkpoints
[[ $(grep -c ': whole' stdout) == 2 ]] || fail "$(cat stdout)"
truncate -s -1 checkpoints/step-00000003/second_moments.safetensors
expect 4 'second_moments.safetensors: has ' mgc-ckpt verify checkpoints/step-00000003
truncate -s 10 checkpoints/step-00000001/manifest.json
expect 0 '' mgc-ckpt show checkpoints
says 'step 1 | checkpoints/step-00000001/manifest.json: it is damaged'

expect 0 '' mgc-ckpt prune checkpoints --keep 2
says 'removed 1 of 3 checkpoints'
expect 0 '' mgc-ckpt prune checkpoints
[[ $(cd checkpoints && echo *) == 'latest lock step-00000003' ]] || fail "left: $(ls checkpoints)"
refuse 4 'there is no checkpoint in none' mgc-ckpt prune none
[[ -e none ]] && fail 'a folder that was only asked for'
refuse 2 'must be between 1 and' mgc-ckpt prune checkpoints --keep 0
refuse 2 'unknown subcommand shw (did you mean show?)' mgc-ckpt shw
finish
