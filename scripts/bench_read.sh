#!/bin/bash
# bench_read.sh PROGRAM LATTICE PAIRS [INFO OPTIONS]: reading a lattice against dd on the same disk. In turn dd and `info`
# read LATTICE, which is dropped from the page cache before each; prints the seconds and dd's over info's read_seconds.
set -euo pipefail
if [ $# -lt 3 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  [ "${1:-}" = --help ] && exit 0 || exit 2
fi
program=$1 lattice=$2 pairs=$3
shift 3
report=$(mktemp)
trap 'rm -f "$report"' EXIT

drop() {
  sync "$lattice"
  dd if="$lattice" iflag=nocache count=0 status=none
}

for ((i = 0; i < pairs; i++)); do
  drop
  begin=$(date +%s.%N)
  dd if="$lattice" of=/dev/null bs=4M status=none
  end=$(date +%s.%N)
  drop
  "$program" info "$lattice" --quiet --json "$report" "$@" >/dev/null
  echo "$begin $end $(sed -n 's/.*"read_seconds":[[:space:]]*\([^,]*\),*/\1/p' "$report")"
done | awk '{ printf "%.3f %.3f %.2f\n", $2 - $1, $3, ($2 - $1) / $3 }' | sort -n -k 3 |
  awk 'BEGIN { print "dd s  info s  ratio" } { print; ratio[NR] = $3 }
       END { printf "median ratio %.2f\n", (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2 }'
