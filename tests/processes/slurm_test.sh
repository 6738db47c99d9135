#!/bin/bash
# Runs as tasks of Slurm, on a cluster of one node that the test makes of this machine. Skipped where
# Slurm and munge are not installed, or cannot start.
source tools/commands/commands_test_lib.sh
source "$OLDPWD/tests/processes/processes_test_lib.sh"
make_text

skip() {
  echo "skipped: $1"
  exit 0
}

# A cluster whose files are all in this folder.
start_cluster() {
  local here=$PWD node
  node=$(hostname -s)
  mkdir state spool
  head -c 128 /dev/urandom >key
  chmod 400 key
  chmod 711 .
  munged --foreground --force --key-file="$here/key" --socket="$here/munge" \
    --pid-file="$here/munge.pid" --log-file="$here/munge.log" --seed-file="$here/seed" &
  export SLURM_CONF=$here/slurm.conf
  cat >slurm.conf <<END
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
AuthInfo=socket=$here/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool
SlurmctldPidFile=$here/ctld.pid
SlurmdPidFile=$here/d.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
ReturnToService=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$node Default=YES State=UP OverSubscribe=YES
END
  slurmctld -D >ctld.log 2>&1 &
  slurmd -D >d.log 2>&1 &
  trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$here"' EXIT
  local i
  for ((i = 0; i < 100; ++i)); do
    sinfo --noheader --states=idle 2>/dev/null | grep -q idle && return
    sleep 0.1
  done
  tail -n 3 ./*.log
  skip 'no cluster of Slurm comes up'
}

((EUID == 0)) || skip 'only root can make a cluster of Slurm'
for program in munged slurmctld slurmd srun sbatch; do
  [[ -n $(type -P $program || ls /usr/sbin/$program 2>/dev/null) ]] || skip "no $program"
done
PATH=$PATH:/usr/sbin
start_cluster

mgc-compile llama-tiny --tp 2 --pp 2 --world-size 4 --global-batch-size 8 -o p.plan || fail 'no plan'
run=(--data text.txt --steps 3 --json)
mgc-run p.plan "${run[@]}" >threads.txt || fail 'threads'
losses() { cut -d, -f1-3 "$1"; }
for tasks in 2 4; do
  srun --mpi=pmix --overcommit -n $tasks mgc-run p.plan "${run[@]}" >slurm.txt || fail "$tasks tasks"
  cmp <(losses threads.txt) <(losses slurm.txt) || fail "$tasks tasks have other losses"
done

# Without PMIx tasks do not find each other: they say so, and none takes itself for all.
for way in none pmi2; do
  expect 1 'Slurm has started 2 processes' srun --mpi=$way --overcommit -n 2 mgc-run p.plan "${run[@]}"
  also 'srun --mpi=pmix'
done

# The batch script of docs/running.md, smaller, and mpirun in its place.
cat >job.sh <<'END'
#!/bin/bash
#SBATCH --ntasks=2 --output=job.out
srun --mpi=pmix mgc-run p.plan --data text.txt --steps 3 --json --metrics metrics.jsonl --run-dir run1
mpirun --oversubscribe mgc-run p.plan --data text.txt --steps 3 --json
END
sbatch --wait job.sh >sbatch.txt || fail "a batch job: $(cat job.out)"
losses threads.txt >want.txt
cmp <(cat want.txt want.txt) <(losses job.out) || fail 'a batch job has other losses'
[[ $(wc -l <metrics.jsonl) == 3 ]] || fail 'no metrics'
mgc-status run1 >stdout || fail 'no status'
[[ $(grep -c 'has ended$' stdout) == 2 ]] || fail "a run that is over: $(cat stdout)"

# A task that dies ends the step, and is named.
expect 1 'process 1 (pid' srun --mpi=pmix --overcommit -n 2 mgc-run p.plan --data text.txt \
  --steps 4711 --inject kill:backward:2
also 'has died; rank 2 has been computing'
sleep 1
[[ -z $(pgrep -f 'mgc-run .*--steps 4711') ]] || fail 'tasks are left'
finish
