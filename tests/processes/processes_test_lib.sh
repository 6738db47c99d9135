# Sourced by the tests of runs in several processes, behind commands_test_lib.sh: a plan's threads and
# its processes, started in the ways there are.

# Open MPI asks root for a reason.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# launch WAY PLAN FLAG...: runs a plan on threads (`threads`), in N forked processes (`forked-N`), or in
# N processes of mpirun: that share memory (`mpi-N`), that do but have all-reduces of the MPI library
# (`library-N`), that have nothing but MPI (`far-N`), or of which each half shares memory (`mixed-N`).
# The last two need can_pretend_hosts.
launch() {
  local way=$1 plan=$2
  local count=${way#*-}
  shift 2
  case $way in
    threads) mgc-run "$plan" "$@" ;;
    forked-*) mgc-run --nproc "$count" "$plan" "$@" ;;
    mpi-*) mpirun --oversubscribe -n "$count" mgc-run "$plan" "$@" ;;
    library-*) mpirun --oversubscribe -n "$count" mgc-run "$plan" "$@" --allreduce mpi ;;
    far-*) on_pretended_hosts "$count" 1 mgc-run --workers 1 "$plan" "$@" ;;
    mixed-*) on_pretended_hosts "$count" $((count / 2)) mgc-run --workers 1 "$plan" "$@" ;;
  esac
}

# Processes whose hosts have different names share no memory, even where one kernel serves both.
other_host=(unshare --uts)
((EUID == 0)) || other_host+=(--map-root-user)
can_pretend_hosts() { "${other_host[@]}" hostname pretended; }

# on_pretended_hosts COUNT EACH COMMAND...: processes of mpirun, EACH of them on a host.
on_pretended_hosts() {
  local count=$1
  export EACH=$2
  shift 2
  # Open MPI's own shared memory does not know of pretended hosts.
  mpirun --oversubscribe -n "$count" --mca btl_vader_single_copy_mechanism none \
    "${other_host[@]}" bash -c \
    'hostname "pretended-$((OMPI_COMM_WORLD_RANK / EACH))" && exec "$@"' sh "$@"
}

# The text that all runs train on.
make_text() {
  local i
  for ((i = 0; i < 600; ++i)); do
    echo "$((i * i % 977)) sheep in pen $((i * 7 % 31)), and $((i % 13)) goats"
  done >text.txt
}
