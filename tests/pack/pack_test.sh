#!/bin/bash
# tools/pack-gpu on programs that need no GPU: what is packed runs anywhere, with an empty environment.
set -uo pipefail
source tools/commands/commands_test_lib.sh
pack=${tools:?}/pack-gpu
mkdir 'a place'

expect 0 '' "$pack" 'a place/first' "$tools/mgc-compile" "$tools/mgc-run"
says '2 programs'
[[ -e 'a place/first/lib/libprotobuf.so.32' ]] || fail 'no libprotobuf'
find 'a place/first/lib' | grep -E '/lib(c|m|stdc\+\+|gcc_s)\.so' && fail 'libraries of the system'
grep -q '^Needed of the machine: symbols up to GLIBC_2\.[0-9]* and GLIBCXX_3\.4' 'a place/first/README' ||
  fail 'the README does not say what is needed'

# Moved, reached through a link, from another folder.
mv 'a place/first' moved
ln -s ../moved/run 'a place/link'
seq 2000 >numbers.txt
here=$PWD
packed() {
  (cd / && env -i "$here/a place/link" "$@")
}
packed mgc-compile gpt2-tiny --seq-length 32 --global-batch-size 8 -o "$here/a.plan" >/dev/null ||
  fail 'a packed mgc-compile ends with an error'
mgc-compile gpt2-tiny --seq-length 32 --global-batch-size 8 -o b.plan >/dev/null
cmp a.plan b.plan || fail 'a packed mgc-compile makes another plan'
packed mgc-run "$here/a.plan" --data "$here/numbers.txt" --steps 2 >steps || fail 'no packed training'
grep -q '^step 2 | loss' steps || fail 'no second step'

# All libraries that are packed are the ones that are loaded.
env -i LD_LIBRARY_PATH="$here/moved/lib" ldd moved/bin/mgc-run | awk '$2 == "=>" {print $1, $3}' >loaded
for library in moved/lib/*; do
  grep -qF " $here/$library" loaded || grep -qF "$here/$library" <(
    env -i LD_LIBRARY_PATH="$here/moved/lib" ldd moved/bin/mgc-compile
  ) || fail "$library is packed and not loaded"
done

# What CUDA brings is not packed: it is looked for among the packages of python3, and said where it is
# not found. The library stands for CUDA's; nothing else here has its name.
mkdir -p cuda packages/nvidia/any
echo 'int answer() { return 42; }' | gcc -x c -shared -fPIC -Wl,-soname,libcublasLt.so.0 - \
  -o cuda/libcublasLt.so.0
echo 'int answer(); int main() { return answer(); }' | gcc -x c - -x none cuda/libcublasLt.so.0 -o asks
expect 0 '' "$pack" asked asks
[[ -z $(ls asked/lib) ]] || fail 'a library of CUDA is packed'
expect 1 'this machine lacks libcublasLt.so.0 (looked for' asked/run asks
mv cuda packages/nvidia/any/lib
expect 42 '' env PYTHONPATH="$PWD/packages" asked/run asks
expect 42 '' env LD_LIBRARY_PATH="$PWD/packages/nvidia/any/lib" asked/run asks
expect 2 'usage: ' moved/run
expect 2 'mgc-compile mgc-run' moved/run mgc-nothing

# A folder of an earlier call is replaced; any other is left alone.
expect 0 '' "$pack" moved "$tools/mgc-compile"
[[ -e moved/lib/libprotobuf.so.32 && ! -e moved/bin/mgc-run ]] || fail 'it is not replaced'
mkdir other
touch other/file
refuse 1 'is there and is no packed folder' "$pack" other "$tools/mgc-compile"
[[ $(ls -A other) == file ]] || fail 'a folder of others is changed'
refuse 1 'above 1 MiB' "$pack" --most-mib 1 x "$tools/mgc-compile"
also ' bin/mgc-compile'
refuse 1 'above 1 MiB' "$pack" --most-mib 1 moved "$tools/mgc-run"
[[ -e moved/bin/mgc-compile ]] || fail 'a refused call has replaced a folder'
refuse 1 'is not there, or no program' "$pack" x numbers.txt
refuse 1 'nearest legal: --arch sm_90a' "$pack" --arch hopper x
refuse 1 'not a whole number' "$pack" --most-mib 0 x
refuse 2 'FOLDER' "$pack"
find . -maxdepth 1 | grep -E '/(x|moved|other)\.' && fail 'a temporary folder is left'
finish
