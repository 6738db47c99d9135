#!/bin/bash
# Inputs and results of the commands: stdin, stdout, paths in each other's way.
set -uo pipefail
source tools/commands_test_lib.sh

seq 400 >text.txt
mgc-compile gpt2-tiny --seq-length 32 -o tiny.plan || fail 'no plan'
mgc-compile gpt2-tiny --stop-after fuse -o model.mgc || fail 'no graph'
run=(mgc-run tiny.plan --data text.txt --steps 1)

# Data may come from stdin, as plans do; one of them at a time.
"${run[@]}" --json 2>&1 | sed 's/"ms":.*//' >first
mgc-run tiny.plan --data - --steps 1 --json <text.txt 2>&1 | sed 's/"ms":.*//' | cmp - first ||
  fail 'data from stdin trains another model'
"${run[@]}" --eval-interval 1 --eval-data - <text.txt | grep -q 'evaluation after step 1' ||
  fail 'no evaluation on stdin'
refuse 4 'stdin is too short' mgc-run tiny.plan --data - --steps 1
grep -q 'at most' stderr && fail 'a sequence length for no bytes'
refuse 2 'more than one input is stdin: PLAN, --data [F6]' mgc-run - --data - --steps 1
refuse 2 'stdin: --data, --eval-data [F6]' mgc-run tiny.plan --data - --steps 1 \
  --eval-interval 1 --eval-data -
refuse 2 'stdin: MODEL, --cluster [F6]' mgc-compile - --cluster - -o x
refuse 2 'stdin: PLAN, PLAN [F6]' mgc-plan diff - -

# stdout takes one result; the steps of a run are one.
for flag in --metrics --trace --dump-grads --dump-params; do
  refuse 2 "more than one result goes to stdout: the steps, $flag [F6]" "${run[@]}" "$flag" -
done
[[ -e ./- ]] && fail 'a file named -'
refuse 2 'stdout: --dot, --svg [F6]' mgc-compile gpt2-tiny --dot - --svg -
refuse 2 'stdout: the proof, --dot [F6]' mgc-verify tiny.plan --dot -
refuse 2 'stdout: -o, --svg [F6]' mgc-plan dot tiny.plan --svg -

# No two results in one file, however it is called.
refuse 2 'x: --dump-grads, --dump-params [F6]' "${run[@]}" --dump-grads x --dump-params ./x
refuse 2 'x: --dot, -o [F6]' mgc-compile gpt2-tiny -o x --dot x
refuse 2 'x: -o, --svg [F6]' mgc-plan dot tiny.plan -o x --svg "$PWD/x"

# What cannot be written shows before the training.
for path in missing/x . text.txt/x ''; do
  for flag in --trace --dump-grads --dump-params --metrics; do
    refuse 1 "cannot write $path" "${run[@]}" "$flag" "$path"
  done
done

# A graph has no views.
for view in '--dot x' '--svg x' '--report json'; do
  # shellcheck disable=SC2086
  refuse 2 "${view% *} needs a plan, and --stop-after makes none [F6]" \
    mgc-compile gpt2-tiny --stop-after fuse -o x $view
done
finish
