#!/usr/bin/env bash
# Residual histories of every way to solve are what they were, to the last bit, on every rank grid: each
# line of golden_histories.txt is a hash of what the report says of the iterations, the numbers of
# ranks, and the request. `golden_histories.sh PROGRAM SOURCE --renew` prints the table anew.
. "$(dirname "$0")/common.sh"
# Which products and sums become one instruction, rounded once, is the compiler's choice and needs FMA.
grep -qw fma /proc/cpuinfo && "$minidirac" info "$2/inputs/beta5.7_4x4x4x8.lime" --json - | grep -q '"compiler":.*"GNU 12' ||
  exit 77
table=$(dirname "$0")/golden_histories.txt
lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
on 1 eigen "$lattice" --modes 6 --tol 1e-8 --backend cpu_simd --output "$work/modes.h5" --quiet || complain "eigen: exit $?"
on 1 solve "$lattice" --mass 0.2 --backend cpu_simd --tol 1e-3 --output "$work/guess.h5" --quiet || complain "guess: exit $?"

hash_of() { # FILE: of iterations, counts and residuals
  grep -E '^\s*"(iterations|residual_history|relative_residual|double_iterations|updates|restarts|block_rank|(mode_)?projections|iterated_residual|refine_iterations)":' "$1" |
    tr -d ' \t' | sed 's/"mode_/"/' | sha256sum | cut -c1-16
}

while read -r -u 3 golden ranks request; do
  case $golden in ''|\#*) continue ;; esac
  arguments=${request//MODES/$work/modes.h5}
  arguments=${arguments//GUESS/$work/guess.h5}
  found=
  for n in ${ranks//,/ }; do
    # shellcheck disable=SC2086
    on "$n" solve "$lattice" --mass 0.05 $arguments --quiet --json "$work/report.json" 2>"$work/err"
    [ $? -le 1 ] || complain "$request on $n ranks: $(cat "$work/err")"
    now=$(hash_of "$work/report.json")
    found=${found:-$now}
    if [ "${3-}" = --renew ]; then
      [ "$now" = "$found" ] || complain "$request: another history on $n ranks"
    else
      [ "$now" = "$golden" ] || complain "$request on $n ranks: the history has the hash $now, not $golden"
    fi
    rm -f "$work/report.json"
  done
  [ "${3-}" != --renew ] || printf '%s %s %s\n' "$found" "$ranks" "$request"
done 3<"$table"
finish
