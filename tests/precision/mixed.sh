#!/usr/bin/env bash
# Mixed-precision solves on gauge configurations of another code: the known pion correlator to
# double precision, iterations near those of CG in double, the same history on every rank count.
. "$(dirname "$0")/../program/common.sh"
lattices=${MINIDIRAC_SHARED_LATTICES:-}
[ -f "$lattices/lat.sample.l4448" ] || { echo "no shared lattices at '$lattices'"; exit 77; }

expected='[2.560955983842016, 1.034464452603123, 0.5897258600773996, 0.3491443973228939, 0.2298115278269385, 0.2840038752248707, 0.4973365186200647, 1.024466580197261]'
for inner in single half bf16 fixed; do
  for ranks in 1 4; do
    report=$work/$inner.$ranks.json
    on $ranks solve --lattice "$lattices/lat.sample.l4448" --mass 0.1 --tol 1e-12 --inner $inner \
      --quiet --json "$report" || complain "$inner, $ranks ranks: exit $?"
    close "$(key pion_correlator "$report")" "$expected" 1e-10 || complain "$inner: another correlator"
    [ "$(key inner "$report")" = "\"$inner\"" ] || complain "$inner: reported as $(key inner "$report")"
    [ "$(key residual_history "$report")" = "$(key residual_history "$work/$inner.1.json")" ] ||
      complain "$inner: history differs on $ranks ranks"
  done
done

# within LATTICE MASS INNER RATIO: iterations at most RATIO times those in double, in d.json.
within() {
  on 1 solve --lattice "$lattices/$1" --mass "$2" --tol 1e-12 --inner "$3" --quiet --json "$work/m.json" ||
    complain "$1 $2 $3: exit $?"
  awk -v d="$(key iterations "$work/d.json")" -v m="$(key iterations "$work/m.json")" -v r="$4" \
    'BEGIN { exit !(m <= r * d) }' ||
    complain "$1 $2 $3: $(key iterations "$work/m.json") iterations, double $(key iterations "$work/d.json")"
}
for mass in 0.02 0.1; do
  for lattice in lat.sample.l4448 lat.sample.l4444.ildg lat.sample.hisq.f211b670.l6666; do
    on 1 solve --lattice "$lattices/$lattice" --mass $mass --tol 1e-12 --quiet --json "$work/d.json"
    within $lattice $mass single 1.3
    within $lattice $mass half 1.5
    within $lattice $mass bf16 1.5
    within $lattice $mass fixed 1.5
  done
done

refuses 1 'must be at most 1e-17, stalled at [0-9.]*e-1[456] after' 1 solve --tol 1e-17 --max-iter 20000 \
  --lattice "$lattices/lat.sample.l4448" --mass 0.1 --inner single
refuses 1 'true residual must be at most 1e-10, got .*--inner' 1 solve --lattice "$lattices/lat.sample.l4448" \
  --mass 0.1 --precision half
refuses 2 'inner needs --precision double.*got single' 2 solve --lattice "$lattices/lat.sample.l4448" \
  --mass 0.1 --precision single --inner half
finish
