#!/usr/bin/env bash
# The job scripts of scripts/cluster through a Slurm: each solves on as many ranks and nodes as it was asked for, and the
# report says so; a job that gets the signal which Slurm sends before the end of its time leaves a checkpoint, and the same
# line with --resume goes on to the bits of a solve that nothing ended. (No GPU is used: the node only counts some.)
[ -n "${SLURM_CONF:-}" ] || exec bash "$(dirname "$0")/slurm.sh" bash "$0" "$@"
. "$(dirname "$0")/../program/common.sh"
cd "$work" || exit 1
# The two nodes are one host, on which shared memory has names by host: ranks of different nodes would mistake it for theirs.
export MINIDIRAC=$minidirac OMPI_MCA_btl=self,tcp
jobs=$source_dir/scripts/cluster
lattice=$source_dir/inputs/beta6.0_8x8x8x8.h5

# submit NAME OPTIONS... : submits, sets job.
submit() {
  local name=$1
  shift
  job=$(sbatch --parsable --output="$name.out" "$@") || complain "sbatch $name: exit $?"
}
# state: of the job, as Slurm calls it; its exit code.
state() { scontrol show job "$job" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p'; }
exit_code() { scontrol show job "$job" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p'; }
# ended CODE NAME: waits for the job's end; its exit code.
ended() {
  for ((i = 0; i < 600; i++)); do
    [[ $(state) =~ PENDING|RUNNING|COMPLETING ]] || break
    sleep 0.2
  done
  [ "$(exit_code)" = "$1" ] || complain "job $2: $(state), exit $(exit_code), expected $1: $(tail -5 "$2.out")"
}

solve="solve $lattice --mass 0.1 --tol 1e-10 --backend cpu_simd"
on 1 $solve --quiet --json alone.json || complain "solve without Slurm: exit $?"
for case in "cpu 2 --ntasks-per-node=2" "gpu 1" "nodes 4 --ntasks-per-node=2 --gpus-per-node=2"; do
  read -r kind ranks options <<<"$case"
  submit "$kind" $options --cpus-per-task=1 "$jobs/$kind.slurm" $solve --json "$kind.json"
  ended 0 "$kind"
  [ "$(key ranks "$kind.json") $(key threads "$kind.json") $(key job "$kind.json")" = "$ranks 1 \"SLURM_JOB_ID=$job\"" ] ||
    complain "$kind: ranks, threads and job are $(key ranks "$kind.json") $(key threads "$kind.json") $(key job "$kind.json")"
  close "$(key pion_correlator "$kind.json")" "$(key pion_correlator alone.json)" 1e-8 ||
    complain "$kind: correlator $(key pion_correlator "$kind.json"), without Slurm $(key pion_correlator alone.json)"
done

# A tolerance that is never met, so that the number of iterations ends it (exit 1), or the signal does.
long="solve $lattice --mass 1e-4 --tol 1e-20 --backend cpu_simd --source random:1 --max-iter 3000"
OMP_NUM_THREADS=1 on 1 $long --quiet --json whole.json && complain "a tolerance of 1e-20 was met"
cut=("$jobs/cpu.slurm" $long --checkpoint state.h5 --checkpoint-every 50 --json parts.json)
submit first --ntasks=1 --cpus-per-task=1 "${cut[@]}"
for ((i = 0; i < 300; i++)); do
  [ -f state.h5 ] && break
  sleep 0.1
done
scancel --signal=USR1 "$job" || complain "scancel: exit $?"
ended 3 first
[ "$(key interrupted parts.json)" = true ] || complain "the job that got the signal was not interrupted"
submit second --ntasks=1 --cpus-per-task=1 "${cut[@]}" --resume
ended 1 second
for name in iterations residual_history; do
  [ -n "$(key $name whole.json)" ] && [ "$(key $name parts.json)" = "$(key $name whole.json)" ] || complain "$name: others in two parts"
done
finish
