#!/usr/bin/env bash
# Mixed-precision solves: the known pion correlator to double precision, iterations near those of CG
# in double, the same history on every rank count; on the lattice of inputs/ and, where they lie
# beside the tree, on gauge configurations of another code.
. "$(dirname "$0")/../program/common.sh"
export OMP_NUM_THREADS=1 # small lattices
. "$(dirname "$0")/../program/golden_correlators.sh"
shared=${MINIDIRAC_SHARED_LATTICES:-}
[ -f "$shared/lat.sample.l4448" ] || { shared= && left_out lattices_of_another_code; }

# correlators LATTICE EXPECTED: every inner precision.
correlators() {
  local name
  name=$(basename "$1")
  for inner in single half bf16 fixed; do
    for ranks in 1 2; do
      report=$work/$name.$inner.$ranks.json
      on $ranks solve --lattice "$1" --mass 0.1 --tol 1e-12 --inner $inner --quiet --json "$report" ||
        complain "$name, $inner, $ranks ranks: exit $?"
      close "$(key pion_correlator "$report")" "$2" 1e-10 || complain "$name, $inner: another correlator"
      [ "$(key inner "$report")" = "\"$inner\"" ] || complain "$inner: reported as $(key inner "$report")"
      [ "$(key residual_history "$report")" = "$(key residual_history "$work/$name.$inner.1.json")" ] ||
        complain "$name, $inner: history differs on $ranks ranks"
    done
  done
}
correlators "$own_lattice" "$own_correlator"
[ -z "$shared" ] || correlators "$shared/lat.sample.l4448" "$shared_correlator"

# within LATTICE MASS INNER RATIO: iterations at most RATIO times those in double, in d.json.
within() {
  on 1 solve --lattice "$1" --mass "$2" --tol 1e-12 --inner "$3" --quiet --json "$work/m.json" ||
    complain "$1 $2 $3: exit $?"
  awk -v d="$(key iterations "$work/d.json")" -v m="$(key iterations "$work/m.json")" -v r="$4" \
    'BEGIN { exit !(m <= r * d) }' ||
    complain "$1 $2 $3: $(key iterations "$work/m.json") iterations, double $(key iterations "$work/d.json")"
}
# The ratios of docs/solvers.md and a few per cent: 1.02, 1.02, 1.08, 1.02 on the lattice of inputs/.
for mass in 0.02 0.1; do
  on 1 solve --lattice "$own_lattice" --mass $mass --tol 1e-12 --quiet --json "$work/d.json"
  within "$own_lattice" $mass single 1.06
  within "$own_lattice" $mass half 1.06
  within "$own_lattice" $mass bf16 1.13
  within "$own_lattice" $mass fixed 1.06
  for lattice in lat.sample.l4448 lat.sample.l4444.ildg lat.sample.hisq.f211b670.l6666; do
    [ -n "$shared" ] && [ $mass = 0.02 ] || break
    on 1 solve --lattice "$shared/$lattice" --mass $mass --tol 1e-12 --quiet --json "$work/d.json"
    within "$shared/$lattice" $mass single 1.25
    within "$shared/$lattice" $mass half 1.3
    within "$shared/$lattice" $mass bf16 1.5
    within "$shared/$lattice" $mass fixed 1.3
  done
done

refuses 1 'must be at most 1e-17, stalled at [0-9.]*e-1[456] after [0-9]* iterations; raise --tol$' 1 solve --tol 1e-17 --max-iter 20000 \
  --lattice "$own_lattice" --mass 0.1 --inner single
# Deflation neither makes noise grow at the limit of double, with many right-hand sides on a light
# lattice, nor a direction that is none where a free field has few eigenvalues.
on 1 generate --dims 4x4x4x8 --beta 5.7 --sweeps 10 --seed 3 -o "$work/light.h5" --quiet || complain "light links: exit $?"
for inner in "single --mass 0.003" "half --mass 0.001"; do # shellcheck disable=SC2086
  refuses 1 'must be at most 1e-13, stalled at [0-9.]*e-1[23] after' 1 solve "$work/light.h5" --inner $inner \
    --source random:1 --rhs 16 --tol 1e-13
done
on 1 generate --dims 4x4x4x4 --start cold -o "$work/cold.h5" --quiet || complain "cold links: exit $?"
for inner in single half bf16; do
  on 1 solve "$work/cold.h5" --mass 0.05 --inner $inner --max-iter 40 --quiet || complain "free field, $inner: exit $?"
done
# Whose solutions lie in a few directions: a projection leaves nothing, a new one lies among the others.
on 1 generate --dims 6x2x4x4 --start cold -o "$work/few.h5" --quiet || complain "cold links: exit $?"
for way in "corner:0 --mass 0.5 --inner single" "wall:0 --mass 0.5 --inner bf16" "oddwall:0 --mass 0.05 --inner half"; do # shellcheck disable=SC2086
  on 1 solve "$work/few.h5" --source $way --tol 1e-12 --quiet || complain "free field, $way: exit $?"
done
# The same with four spins, and at the limit of double with modes.
on 1 generate --dims 2x2x2x2 --start cold -o "$work/tiny.h5" --quiet || complain "tiny links: exit $?"
on 1 solve "$work/tiny.h5" --action wilson --mass 0.03 --boundary periodic --source wall:0 --inner half --quiet ||
  complain "free Wilson quark: exit $?"
on 1 generate --dims 4x4x4x4 --beta 5.0 --seed 2 --sweeps 12 -o "$work/strong.h5" --quiet &&
  on 1 eigen "$work/strong.h5" --action asqtad --modes 8 --output "$work/modes.h5" --quiet || complain "modes: exit $?"
refuses 1 'must be at most 1e-12, stalled at [0-9.]*e-11 after' 1 solve "$work/strong.h5" --action asqtad --mass 1e-4 \
  --source colour:2,53 --rhs 2 --tol 1e-12 --inner half --deflate "$work/modes.h5"
refuses 1 'true residual must be at most 1e-10, stalled at .*--inner' 1 solve --lattice "$own_lattice" \
  --mass 0.1 --precision half
refuses 2 'inner needs --precision double.*got single' 2 solve --lattice "$own_lattice" \
  --mass 0.1 --precision single --inner half
finish
