# Sourced by the tests of runs in several processes, behind commands_test_lib.sh: a plan's threads and
# its processes, started in the ways there are.

# Open MPI asks root for a reason.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# launch WAY PLAN FLAG...: runs a plan on threads (`threads`), in N forked processes (`forked-N`), in
# N processes of mpirun (`mpi-N`), or there with all-reduces of the MPI library (`library-N`).
launch() {
  local way=$1 plan=$2
  shift 2
  case $way in
    threads) mgc-run "$plan" "$@" ;;
    forked-*) mgc-run --nproc "${way#forked-}" "$plan" "$@" ;;
    mpi-*) mpirun --oversubscribe -n "${way#mpi-}" mgc-run "$plan" "$@" ;;
    library-*)
      mpirun --oversubscribe -n "${way#library-}" mgc-run "$plan" "$@" --allreduce mpi
      ;;
  esac
}

# The text that all runs train on.
make_text() {
  local i
  for ((i = 0; i < 600; ++i)); do
    echo "$((i * i % 977)) sheep in pen $((i * 7 % 31)), and $((i % 13)) goats"
  done >text.txt
}
