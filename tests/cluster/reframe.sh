#!/usr/bin/env bash
# The ReFrame check of scripts/cluster through a Slurm: class XS of the suite passes on two ranks, and its figure of merit is read.
command -v reframe >/dev/null || { echo "no reframe here" && exit 77; }
[ -n "${SLURM_CONF:-}" ] || exec bash "$(dirname "$0")/slurm.sh" bash "$0" "$@"
. "$(dirname "$0")/../program/common.sh"
cd "$work" || exit 1
cat >settings.py <<'P'
site_configuration = {
    "systems": [{"name": "scratch", "hostnames": [".*"], "modules_system": "nomod",
                 "partitions": [{"name": "all", "scheduler": "squeue", "launcher": "srun", "environs": ["none"]}]}],
    "environments": [{"name": "none"}],
}
P
HOME=$work reframe -C settings.py -c "$source_dir/scripts/cluster/reframe_check.py" -r -n naive --prefix runs --nocolor \
  -S suite_class=XS -S num_tasks=2 -S executable="$minidirac" >out 2>&1 || complain "reframe: exit $?, $(cat out)"
grep -q 'Ran 1/1 test case' out || complain "not one check: $(cat out)"
grep -qE 'figure_of_merit: [0-9.]+ right-hand sides/s' out || complain "no figure: $(cat out)"
finish
