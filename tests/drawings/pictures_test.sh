#!/bin/bash
# The picture of the README is what the README's command draws. From the repository's root, with the
# commands on PATH, `tests/drawings/pictures_test.sh --renew` draws it anew.
set -euo pipefail
picture=$PWD/docs/pictures/front.svg
command=$(grep -- ' --plot front.svg' README.md)
export PATH=$PWD/tools:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
bash -euo pipefail <<<"$command"
if [[ ${1:-} == --renew ]]; then
  cp front.svg "$picture"
elif ! cmp front.svg "$picture"; then
  echo "docs/pictures/front.svg is not what the README's command draws;" >&2
  echo 'look at both, then: tests/drawings/pictures_test.sh --renew' >&2
  exit 1
fi
