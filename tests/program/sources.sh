#!/usr/bin/env bash
# Sources of solve and what they report: several points are the mean of each, shifts are masses, a
# condensate from noise is that of all eigenvalues, bits do not depend on the rank grid, refusals.
. "$(dirname "$0")/common.sh"
export OMP_NUM_THREADS=1
lattice=$work/lattice.h5
on 1 generate --dims 4x4x4x4 --start hot --seed 5 --output "$lattice" --quiet --json "$work/g.json" || complain "generate: exit $?"
on 2 info "$lattice" --quiet --json "$work/i.json" --grid 1x1x1x2 || complain "info: exit $?"
[ -n "$(key polyakov_loop "$work/i.json")" ] && [ "$(key polyakov_loop "$work/i.json")" = "$(key polyakov_loop "$work/g.json")" ] ||
  complain "Polyakov loop: $(key polyakov_loop "$work/i.json"), $(key polyakov_loop "$work/g.json")"
s="solve $lattice --mass 0.3 --quiet --tol 1e-12"

# solved NAME ARGUMENTS...
solved() {
  local name=$1
  shift
  on 1 $s "$@" --json "$work/$name.json" || complain "$*: exit $?"
}
solved a --source point:0,0,0,0
solved b --source point:1,2,1,3
solved both --source 'points:0,0,0,0;1,2,1,3' --momenta '0,0,0;1,0,0;0,1,1'
# b turned so that t counts from its point, and the mean of both.
mean=$(awk -v a="$(key pion_correlator "$work/a.json")" -v b="$(key pion_correlator "$work/b.json")" 'BEGIN {
  gsub(/[\[\]]/, "", a); gsub(/[\[\]]/, "", b); n = split(a, x, ","); split(b, y, ",")
  for (t = 0; t < n; t++) printf "%s%.16g", t ? "," : "", (x[t + 1] + y[(t + 3) % n + 1]) / 2 }')
close "$(key pion_correlator "$work/both.json")" "$mean" 1e-10 || complain "two points: $(key pion_correlator "$work/both.json"), not $mean"
[ "$(key pion_correlator_from "$work/both.json")" = '"source"' ] && [ "$(key pion_correlator_from "$work/a.json")" = '"lattice"' ] || complain "where t counts from"
close "$(key correlator "$work/both.json")" "$mean" 1e-10 || complain "momentum zero"
[ "$(grep -c '"correlator"' "$work/both.json")" = 3 ] || complain "three momenta"

for source in seeded:3,7 corner:1 evenwall:2 oddwall:1 colour:3,5 wall:1; do
  solved 1 --source $source
  [ -n "$(key pion_correlator "$work/1.json")" ] || complain "$source: no correlator"
  for grid in 1x1x1x2 2x1x2x1; do
    ranks=2
    [ $grid = 2x1x2x1 ] && ranks=4
    on $ranks $s --source $source --grid $grid --json "$work/n.json" || complain "$source, $grid: exit $?"
    [ "$(key pion_correlator "$work/n.json")" = "$(key pion_correlator "$work/1.json")" ] || complain "$source, $grid: other bits"
  done
done

# All eigenvalues: 384 = 3 on each of 128 even sites; tr M^-1 / V = sum 2 m / (m^2 + lambda) / V.
on 1 eigen "$lattice" --modes 384 --tol 1e-6 --quiet --json "$work/e.json" || complain "eigen: exit $?"
exact=$(awk -v e="$(key eigenvalues "$work/e.json")" 'BEGIN { gsub(/[\[\]]/, "", e); n = split(e, x, ",")
  for (i = 1; i <= n; i++) sum += 0.6 / (0.09 + x[i]); printf "%.12g", n == 384 ? sum / 256 : 0 }')
for kind in random u1; do
  solved n --source $kind:3 --rhs 100
  awk -v c="$(key chiral_condensate "$work/n.json")" -v e="$(key chiral_condensate_error "$work/n.json")" -v x="$exact" 'BEGIN {
    d = c - x; exit !(e > 0 && e < 0.05 * x && d * d < 16 * e * e) }' ||
    complain "$kind: condensate $(key chiral_condensate "$work/n.json") +- $(key chiral_condensate_error "$work/n.json"), all eigenvalues $exact"
done
on 1 measure --lattices "$lattice" --masses 0.3,0.5 --sources u1:3 --vectors 100 --output "$work/study.h5" --quiet --json "$work/m.json" || complain "measure: exit $?"
awk -v c="$(key chiral_condensate "$work/m.json")" -v e="$(key stochastic_error "$work/m.json")" -v x="$exact" 'BEGIN {
  d = c - x; exit !(e > 0 && e < 0.05 * x && d * d < 16 * e * e) }' ||
  complain "measure: condensate $(key chiral_condensate "$work/m.json") +- $(key stochastic_error "$work/m.json"), all eigenvalues $exact"

# Shifts are masses: 0.09 + 0.16 = 0.5^2. Their solutions are files of their own.
ms="$s --solver multishift --shifts 0.16,0"
on 2 $ms --source point:1,1,2,0 --output "$work/x.h5" --json "$work/m.json" || complain "multishift: exit $?"
on 1 solve "$lattice" --mass 0.5 --quiet --tol 1e-12 --source point:1,1,2,0 --output "$work/y.h5" --json "$work/y.json" || complain "mass 0.5: exit $?"
close "$(key pion_correlator "$work/m.json")" "$(key pion_correlator "$work/y.json")" 1e-9 || complain "shift and mass: $(key pion_correlator "$work/m.json")"
if command -v h5dump >/dev/null; then
  numbers() { h5dump -d /propagator/solution "$1" | sed -n 's/^ *\(-\?[0-9.e+-]*\),\?$/\1/p' | paste -sd,; }
  [ "$(numbers "$work/y.h5" | tr -cd , | wc -c)" -gt 1000 ] || complain "h5dump shows no numbers"
  awk -v a="$(numbers "$work/x-0.h5")" -v b="$(numbers "$work/y.h5")" 'BEGIN { n = split(a, x, ","); m = split(b, y, ",")
    for (i = 1; i <= n; i++) { d += (x[i] - y[i])^2; s += y[i]^2 } exit !(n == m && d <= 1e-18 * s) }' || complain "the solution of a shift"
else
  left_out what_h5dump_shows
fi
[ -e "$work/x-1.h5" ] && [ ! -e "$work/x.h5" ] || complain "files of shifts: $(ls "$work")"
on 1 solve "$lattice" --mass 0.5 --quiet --source random:1 --json "$work/one.json" || complain "one vector: exit $?"
grep -q '"chiral_condensate_error":.*null' "$work/one.json" || complain "the error of one estimate: $(key chiral_condensate_error "$work/one.json")"
refuses 2 'replaces no file, but .*x-0.h5 is there' 1 $ms --output "$work/x.h5"
on 1 $ms --output "$work/x.h5" --force || complain "--force: exit $?"
on 1 $ms --source u1:1 --rhs 60 --json "$work/m.json" || complain "multishift, noise: exit $?"
awk -v r="$(sed -n 's/.*"chiral_condensate":\t*\([^,]*\).*/\1/p' "$work/m.json" | tail -1)" -v x="$exact" 'BEGIN { exit !((r / x - 1)^2 < 0.01) }' ||
  complain "multishift: condensate $(grep '"chiral_condensate"' "$work/m.json"), not $exact"

for ranks in 1 2; do
  refuses 2 'points of a source must differ, 1,0,0,0 is there twice' $ranks $s --source 'points:1,0,0,0;1,0,0,0'
  refuses 2 'must lie on the lattice, 0 to 3 in direction y, got 4' $ranks $s --source 'points:1,0,0,0;1,4,0,0'
  refuses 2 'must lie on the lattice, 0 to 3 in direction t' $ranks $s --source colour:4,1
done
for source in corner:1 oddwall:0; do
  refuses 2 "multishift solves on even sites, where right-hand side 0 of source $source is zero" 2 $s --solver multishift --shifts 0,0.1 --source $source
done
refuses 2 'seeded:N,SEED' 1 $s --source seeded:0,1
refuses 2 'at most 128 right-hand sides' 1 $s --source seeded:50,1
refuses 2 '--momenta needs a source of points' 1 $s --source wall:0 --momenta 1,0,0
refuses 2 '--momenta must be a list' 1 $s --momenta 1,0
refuses 2 '--momenta must be a list' 1 $s --momenta upto:30
# Points of a seed are where the lattice says: those of one seed in four are both even.
even=
for seed in $(seq 40); do
  on 1 $ms --source seeded:2,$seed --json "$work/m.json" 2>"$work/err" && even=$seed && break
  grep -qE "must be even, got [0-3](,[0-3]){3} of 'seeded:2,$seed'; give another seed" "$work/err" || complain "seed $seed: $(cat "$work/err")"
done
[ -n "$even" ] && [ "$even" -gt 1 ] || complain "no two even points of 40 seeds, or of the first"
on 1 solve "$lattice" --mass 0.5 --quiet --tol 1e-12 --source seeded:2,$even --json "$work/y.json" || complain "mass 0.5: exit $?"
close "$(key pion_correlator "$work/m.json")" "$(key pion_correlator "$work/y.json")" 1e-9 || complain "shift and mass, two points: $(key pion_correlator "$work/m.json")"
refuses 2 'must be even, got .* of .seeded:2,1.; give another seed' 2 $ms --source seeded:2,1
finish
