# Sourced first by tests of runs on two hosts: two network namespaces with names of their own and a cable
# between them. Starts the test again inside of these, where it has root's rights, and skips it where
# there are none.
set -uo pipefail
export PATH=$PATH:/usr/sbin:/sbin
if [[ ${two_hosts:-} != inside ]]; then
  # All of it goes, cable and processes, with the first process of the namespaces.
  alone=(unshare --net --uts --pid --fork --kill-child --mount-proc)
  ((EUID == 0)) || alone+=(--map-root-user)
  for tool in unshare nsenter ip tc mpirun; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool here"; exit 0; }
  done
  why=$("${alone[@]}" ip link add one type veth peer name other 2>&1) ||
    { echo "skipped: no network namespaces with a cable here: ${why%%$'\n'*}"; exit 0; }
  exec env two_hosts=inside "${alone[@]}" bash "$0" "$@"
fi
source tools/commands/commands_test_lib.sh
source "$OLDPWD/tests/processes/processes_test_lib.sh"
export TMPDIR=$scratch  # other users may own the launcher's folders in the usual place

# This shell is on host `first`; `far` is a process on host `second`.
hostname first
unshare --net --uts sh -c 'hostname second && exec sleep 1000' &
far=$!
on_second() { nsenter --target $far --net --uts "$@"; }
for ((i = 0; i < 250; ++i)); do
  [[ $(on_second hostname 2>/dev/null) == second ]] && break
  sleep 0.02
done
set_up() {  # ADDRESS COMMAND...: a host's cable, where COMMAND leads
  local address=$1
  shift
  "$@" ip link set lo up && "$@" ip addr add "$address/24" dev cable &&
    "$@" ip link set cable up
}
# patience N: how often both hosts send again over a connection before they give it up.
patience() {
  echo "$1" >/proc/sys/net/ipv4/tcp_retries2
  on_second sh -c "echo $1 >/proc/sys/net/ipv4/tcp_retries2"
}
# A host that is there refuses, at a port where nobody listens.
answers() {  # ADDRESS COMMAND...: where COMMAND leads
  local address=$1
  shift
  [[ $("$@" timeout 1 bash -c "echo >/dev/tcp/$address/9" 2>&1) == *refused* ]]
}
connect() {
  local i
  ip link set cable up
  for ((i = 0; i < 250; ++i)); do
    answers 10.77.0.2 env && answers 10.77.0.1 on_second && return 0
    sleep 0.02
  done
  return 1
}
# shellcheck disable=SC2015
ip link add cable type veth peer name cable netns $far && set_up 10.77.0.1 env &&
  set_up 10.77.0.2 on_second && connect || { fail 'no cable'; finish; }
printf '10.77.0.1 slots=2\n10.77.0.2 slots=2\n' >hosts
# What ssh is elsewhere: host, then words of a command line.
cat >agent <<SH
#!/bin/sh
shift
exec nsenter --target $far --net --uts sh -c "\$*"
SH
chmod +x agent

# on_hosts PROCESSES PLAN FLAG...: one or two processes on each host.
on_hosts() {
  local processes=$1
  shift
  mpirun --hostfile hosts -n "$processes" --map-by ppr:$((processes / 2)):node --bind-to none \
    --mca plm_rsh_agent "$PWD/agent" --mca pml ob1 --mca btl tcp,self \
    --mca btl_tcp_if_include cable --mca oob_tcp_if_include cable \
    "$(command -v mgc-run)" "$@"
}
# Bytes that have crossed the cable, `rx` or `tx`.
carried() { ip -s -json link show cable | grep -o "\"$1\":{\"bytes\":[0-9]*" | grep -o '[0-9]*$'; }
# limit RATE BURST LATENCY: of the cable, both ways; fails with the reason.
limit() {
  local slow=(tc qdisc replace dev cable root tbf rate "$1" burst "$2" latency "$3")
  "${slow[@]}" 2>&1 && on_second "${slow[@]}" 2>&1
}
no_limit() {
  tc qdisc del dev cable root
  on_second tc qdisc del dev cable root
}
