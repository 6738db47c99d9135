#!/bin/bash
# Inputs and results of the commands: stdin, stdout, paths in each other's way.
set -uo pipefail
source tools/commands/commands_test_lib.sh

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
for flag in --metrics --openmetrics --trace --dump-grads --dump-params; do
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

# No result goes over an input, however that is called.
keeps() {
  local input=$1
  cp "$input" original
  shift
  refuse 2 'would overwrite' "$@"
  cmp "$input" original || fail "$input is lost: $*"
}
cp text.txt k.txt
cp tiny.plan k.plan
ln -s k.txt soft
ln k.txt hard
for result in k.txt ./k.txt "$PWD/k.txt" soft hard; do
  for flag in --metrics --openmetrics --trace --dump-grads --dump-params; do
    keeps k.txt mgc-run tiny.plan --data k.txt --steps 1 "$flag" "$result"
    keeps k.txt mgc-run tiny.plan --data text.txt --steps 1 --eval-interval 1 --eval-data k.txt \
      "$flag" "$result"
  done
done
keeps k.txt mgc-run tiny.plan --data soft --steps 1 --metrics hard
keeps k.plan mgc-run k.plan --data k.txt --steps 1 --metrics k.plan
keeps k.plan mgc-plan dot k.plan -o k.plan
keeps k.plan mgc-plan dot k.plan -o drawing --svg k.plan
keeps k.plan mgc-verify k.plan --dot k.plan
keeps model.mgc mgc-opt model.mgc -o model.mgc
mkdir model
cat >model/config.json <<'JSON'
{"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 257, "n_positions": 64}
JSON
for flag in -o --dot --svg; do
  keeps model/config.json mgc-compile model "$flag" model/config.json
  keeps model/config.json mgc-compile model/config.json "$flag" model/../model/config.json
done
mgc-opt --list >/dev/null || fail 'no list'
mgc-compile gpt2-tiny --seq-length 32 --dump-dir dump || fail 'no dump'
keeps dump/00-logical.mgc mgc-compile dump/00-logical.mgc --dump-dir dump
echo 'machine "m" {}' >machine.mgc
keeps machine.mgc mgc-compile gpt2-tiny --cluster machine.mgc -o machine.mgc
# stdin and stdout are files too; and a preset is none.
keeps k.txt bash -c 'mgc-run tiny.plan --data - --steps 1 --metrics k.txt <k.txt'
refuse 2 'more than one result' bash -c 'mgc-run tiny.plan --data text.txt --steps 1 --metrics y >>y'
expect 0 '' mgc-compile gpt2-tiny --seq-length 32 -o gpt2-tiny
expect 0 '' mgc-compile gpt2-tiny --seq-length 32 -o gpt2-tiny

# What killed writers leave is removed by the next; what a living one writes is not.
touch .mgc-tmp-1-0 .mgc-tmp-1-1
exec 9>>.mgc-tmp-1-1
flock 9
expect 0 '' mgc-compile gpt2-tiny --seq-length 32 -o again.plan
[[ -e .mgc-tmp-1-0 ]] && fail 'a leftover is still there'
[[ -e .mgc-tmp-1-1 ]] || fail 'the file of a living writer is gone'
exec 9>&-
rm -f .mgc-tmp-1-1

# What cannot be written shows before the training.
for path in missing/x . text.txt/x ''; do
  for flag in --trace --dump-grads --dump-params --metrics --openmetrics; do
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
