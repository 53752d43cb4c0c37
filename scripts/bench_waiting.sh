#!/usr/bin/env bash
# Default threads with OpenMP's own waiting and with miniDirac's, in turn, on the machine as it is:
#   bench_waiting.sh PROGRAM [LATTICE_DIMS]   prints a line per run; compare medians of the pairs.
set -euo pipefail
if [ "${1:-}" = --help ] || [ $# -lt 1 ]; then
  sed -n '2,3s/^# //p' "$0"
  [ "${1:-}" = --help ] && exit 0 || exit 2
fi
program=$1
dims=${2:-16x16x16x16}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$program" generate --dims "$dims" --start hot -o "$folder/a.h5" --quiet
for _ in 1 2 3 4 5 6 7; do
  for waiting in off ''; do
    env -u OMP_WAIT_POLICY ${waiting:+MINIDIRAC_WAITING=$waiting} "$program" solve --lattice "$folder/a.h5" \
      --mass 0.3 --source random:1 --quiet --json "$folder/r.json"
    printf '%s %s s\n' "${waiting:-default}" "$(sed -n 's/.*"solver_seconds":\s*\([^,]*\),.*/\1/p' "$folder/r.json")"
  done
done
