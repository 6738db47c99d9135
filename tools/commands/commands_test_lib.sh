# Sourced by the tests of commands: finds the binaries, works in a scratch folder, counts failures.
tools=$PWD/tools
export PATH=$tools:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
failures=0

fail() {
  failures=$((failures + 1))
  echo "FAILED: $*" >&2
}

# expect CODE TEXT COMMAND...: the exit code, and a text in stderr (none: stderr is empty).
# Leaves stdout and stderr in files of these names.
expect() {
  local code=$1 text=$2 rc=0
  shift 2
  "$@" >stdout 2>stderr </dev/null || rc=$?
  if ((rc != code)); then
    fail "exit code $rc instead of $code: $*"
    cat stderr >&2
  fi
  if [[ -z $text && -s stderr ]]; then
    fail "unexpected stderr: $*"
    cat stderr >&2
  elif ! grep -qF -- "$text" stderr; then
    [[ -z $text ]] || { fail "no '$text' in stderr: $*"; cat stderr >&2; }
  fi
}

# refuse CODE TEXT COMMAND...: also leaves nothing on stdout and no file named x.
refuse() {
  expect "$@"
  shift 2
  [[ -s stdout ]] && fail "stdout of a refused command: $*"
  [[ -e x ]] && fail "a file left behind: $*" && rm -f x
  return 0
}

# says TEXT: in the last stdout.
says() {
  grep -qF -- "$1" stdout || { fail "no '$1' in stdout"; head -20 stdout >&2; }
}

# also TEXT: in the last stderr.
also() {
  grep -qF -- "$1" stderr || { fail "no '$1' in stderr"; cat stderr >&2; }
}

# Runs every example that a command's help shows.
run_examples() {
  local example
  "$@" --help >help
  while read -r example; do
    [[ $example == *--svg* ]] && ! command -v dot >/dev/null && example=${example/--svg/--dot}
    # shellcheck disable=SC2086
    $example >stdout 2>stderr </dev/null || {
      fail "example: $example"
      cat stderr >&2
    }
  done < <(sed -n '/^Examples:/,/^$/s/^  //p' help)
}

finish() {
  ((failures == 0)) || { echo "$failures failed" >&2; exit 1; }
  echo "all passed"
}
