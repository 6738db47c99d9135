#!/bin/bash
# Starts mpi_flows as 2 to 4 processes: collectives by MPI alone and beside shared memory, and runs
# that end badly.
set -uo pipefail
flows=$PWD/runtime/comm/mpi/testing/mpi_flows
# The launcher makes sockets there, whose names must be short.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch
failures=0

fail() {
  failures=$((failures + 1))
  echo "FAILED: $*" >&2
  cat "$scratch/out" "$scratch/err" >&2
}

# launch CODE TEXT PROCESSES ARGUMENTS...: the exit code, and a text in what they write.
launch() {
  local code=$1 text=$2 processes=$3 rc=0
  shift 3
  timeout -k 1 40 mpirun --allow-run-as-root --oversubscribe "${options[@]}" -n "$processes" \
    "$flows" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  ((rc == code)) || fail "exit code $rc instead of $code: $processes processes, $*"
  grep -qF -- "$text" "$scratch/out" "$scratch/err" || fail "no '$text': $processes processes, $*"
}

# Not what the machine may have besides: the same everywhere, and no warnings of missing devices.
options=(--mca pml ob1 --mca btl 'self,vader')
launch 0 'process 1 of 2: good' 2 flows
launch 0 'process 2 of 3: good' 3 flows
launch 0 'process 3 of 4: good' 4 flows
launch 0 'process 1 of 2: good' 2 library
launch 0 'process 2 of 3: good' 3 library
launch 0 'process 3 of 4: good' 4 library
launch 7 'process 0 of 2: nobody came' 2 late
launch 9 'process 1 of 3: aborts' 3 abort
launch 137 'signal 9' 3 kill
options=(--mca pml ob1 --mca btl 'self,tcp')
launch 0 'process 2 of 3: good' 3 flows
launch 0 'process 2 of 3: good' 3 library

((failures == 0)) || exit 1
echo "all as they should be"
