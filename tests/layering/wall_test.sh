#!/bin/bash
# wall_test.sh QUERY_RESULT whole|crossed: the list of targets beyond the wall must be empty, or must not.
set -euo pipefail
found=whole
[[ -s $1 ]] && found=crossed
[[ $found == "$2" ]] && exit 0
echo "expected the wall to be $2; targets reached beyond it:" >&2
cat "$1" >&2
exit 1
