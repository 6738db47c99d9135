#!/bin/bash
# mgc-verify from the command line, and the proof inside mgc-compile and mgc-run.
set -uo pipefail
source tools/commands/commands_test_lib.sh

expect 0 '' mgc-verify --help
refuse 2 'usage: mgc-verify PLAN' mgc-verify
for i in $(seq 400); do echo "line $i of a text that is long enough to train on"; done >text.txt
compile=(mgc-compile gpt2-tiny --tp 2 --pp 2 --micro-batch-size 1 --global-batch-size 2
  --seq-length 32)
"${compile[@]}" -o tiny.plan || fail 'no plan to prove'
run_examples mgc-verify

# A plan that was compiled without a proof is proved alone, and says what it is.
expect 0 '' "${compile[@]}" --no-verify -o unproved.plan
expect 0 '' mgc-plan show unproved.plan
says '(not proved)'
expect 0 '' mgc-plan show tiny.plan
says '(proved)'
expect 0 '' mgc-verify unproved.plan
says 'proved for 4 ranks'
expect 0 '' mgc-verify tiny.plan --json
says '"proved": true'
mgc-verify - <tiny.plan | grep -q 'proved for 4 ranks' || fail 'no plan from stdin'

# A damaged plan: every finding, exit code 5, and it does not run.
expect 0 '' "${compile[@]}" -o tiny.mgc
sed '/^segment/,$s/{eps=1e-05}/{eps=1e-04}/' tiny.mgc >wrong.mgc
refuse 5 '[meaning_v6]' mgc-verify wrong.mgc
refuse 5 'the plan is not proved' mgc-run wrong.mgc --data text.txt --steps 1
expect 5 '' mgc-verify wrong.mgc --json
says '"proved": false'
says '"label": "meaning_v6"'

# A text whose parts lie outside of what they are in: refused on reading, whoever reads.
sed 's/ peak [0-9]*/ peak 64/' tiny.mgc >cramped.mgc
refuse 4 'of an arena of 64 [plan_c10]' mgc-verify cramped.mgc
refuse 4 'of an arena of 64 [plan_c10]' mgc-plan show cramped.mgc
refuse 4 'of an arena of 64 [plan_c10]' mgc-run cramped.mgc --data text.txt --steps 1

# What is no plan.
echo 'no plan' >broken.plan
refuse 4 '[file_c1]' mgc-verify broken.plan
refuse 4 'missing.plan' mgc-verify missing.plan
refuse 2 '[F1]' mgc-verify tiny.plan --frobnicate
head -c 1000 tiny.plan >short.plan
refuse 4 '[file_c3]' mgc-verify short.plan

finish
