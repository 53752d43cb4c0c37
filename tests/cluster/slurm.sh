#!/usr/bin/env bash
# slurm.sh COMMAND...: runs the command beside a Slurm of its own: slurmctld, munged and two slurmd on this host, which
# are nodes `one` and `two` of 4 CPUs and 2 GPUs by name alone. Nothing of it is left. Exit 77 where a daemon is not installed.
set -u
PATH=$PATH:/usr/sbin:/sbin
for tool in slurmctld slurmd munged sbatch srun; do
  command -v $tool >/dev/null || { echo "no $tool here" && exit 77; }
done
state=$(mktemp -d)
daemons=()
stop() {
  kill "${daemons[@]}"
  for _ in $(seq 50); do
    kill -0 "${daemons[@]}" 2>/dev/null || break # true while some of them are there
    sleep 0.1
  done
  kill -KILL "${daemons[@]}"
  rm -rf "$state"
} 2>/dev/null
trap stop EXIT
chmod 755 "$state"
mkdir "$state"/{jobs,one,two}
(umask 077 && head -c 1024 /dev/urandom >"$state/key")
munged --foreground --key-file "$state/key" --socket "$state/munge" --pid-file "$state/munged.pid" --seed-file "$state/seed" \
  2>"$state/munged.log" &
daemons+=($!)
read -r control first second < <(python3 -c '
import socket
taken = [socket.socket() for _ in range(3)]
for s in taken:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in taken))')
host=$(hostname -s)
cat >"$state/gres.conf" <<C
AutoDetect=off
NodeName=one,two Name=gpu File=/dev/null
NodeName=one,two Name=gpu File=/dev/zero
C
cat >"$state/slurm.conf" <<C
ClusterName=scratch
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$control
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthInfo=socket=$state/munge
StateSaveLocation=$state/jobs
SlurmdSpoolDir=$state/%n
TmpFS=$state/%n
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/%n.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=pmix
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=one NodeHostname=$host NodeAddr=127.0.0.1 Port=$first CPUs=4 Gres=gpu:2
NodeName=two NodeHostname=$host NodeAddr=127.0.0.1 Port=$second CPUs=4 Gres=gpu:2
PartitionName=all Nodes=ALL Default=YES
C
export SLURM_CONF=$state/slurm.conf
for daemon in slurmctld "slurmd -N one" "slurmd -N two"; do
  $daemon -D 2>/dev/null & # each has its log
  daemons+=($!)
done
idle() { [ "$(sinfo -h -N -o %t 2>/dev/null | sort -u)" = idle ]; }
until idle; do
  [ $SECONDS -lt 60 ] || { echo "Slurm did not start:" && cat "$state"/*.log && exit 1; }
  sleep 0.2
done
"$@"
