#!/usr/bin/env bash
# solve --deflate and --guess: far fewer iterations to the same true residual with every stored and
# inner precision, the same history on every rank grid; a solution begun from itself is done;
# refusals.
. "$(dirname "$0")/common.sh"
export OMP_NUM_THREADS=1 # small lattices, thousands of short steps
lattice=$source_dir/inputs/beta6.0_8x8x8x8.h5
report=$work/report.json
on 1 eigen "$lattice" --modes 32 --tol 1e-6 --output "$work/double.h5" --quiet || complain "eigen: exit $?"
for store in half fixed8; do
  on 1 eigen "$lattice" --modes 32 --tol 1e-6 --start "$work/double.h5" --output "$work/$store.h5" --store $store --quiet || complain "eigen --store $store: exit $?"
done
# solve RANKS OPTIONS...: at a light mass unless `mass` is set, to 1e-10.
solve() {
  local ranks=$1
  shift
  on "$ranks" solve "$lattice" --mass ${mass:-0.002} --source random:1 --rhs ${rhs:-3} --quiet --json "$report" "$@" || complain "solve $*: exit $?"
  awk -v r="$(key relative_residual "$report")" 'BEGIN { exit !(r > 0 && r <= 1e-10) }' || complain "solve $*: residual $(key relative_residual "$report")"
  iterations=$(key iterations "$report")
}

# The 32 lowest of 6144 modes: less than half the iterations. Without the first projection there are
# as many as without modes, without the later ones they come back under modes in half.
for inner in none single half; do
  solve 1 --inner $inner
  plain=$iterations
  for store in double half fixed8; do
    solve 1 --inner $inner --deflate "$work/$store.h5"
    [ $((2 * iterations)) -lt "$plain" ] || complain "inner $inner, modes in $store: $iterations iterations, $plain without modes"
    [ "$(key deflated_modes "$report")" = 32 ] || complain "deflated_modes: $(key deflated_modes "$report")"
  done
done
# Rounding brings the modes back, and costs hardly an iteration.
for inner in none single half fixed; do
  mass=0.0002 solve 1 --inner $inner --deflate "$work/double.h5"
  [ $inner = none ] && exact=$iterations
  [ $((10 * iterations)) -le $((11 * exact)) ] || complain "inner $inner: $iterations iterations, $exact in double"
done
# The rule of --inner auto, with modes and without, and its bits.
for at in "half 0.002 1 --deflate $work/double.h5" 'single 0.002 1' 'half 0.05 1' 'single 0.05 2'; do
  read -r wanted mass rhs options <<<"$at"
  solve 1 --inner auto $options
  [ "$(key inner "$report")" = "\"$wanted\"" ] || complain "$at: $(key inner "$report"), $(key inner_reason "$report")"
  key residual_history "$report" >"$work/history.auto"
  solve 1 --inner $wanted $options
  key residual_history "$report" | cmp -s - "$work/history.auto" || complain "$at: another history than by --inner $wanted"
done
mass= rhs=
solve 1 --solver block
plain=$iterations
solve 1 --solver block --deflate "$work/double.h5"
[ $((3 * iterations)) -lt $((2 * plain)) ] || complain "block CG: $iterations iterations, $plain without modes"
solve 1 --solver block --inner half --deflate "$work/double.h5"
[ $((3 * iterations)) -lt $((2 * plain)) ] || complain "mixed block CG: $iterations iterations, $plain without modes"
solve 1 --solver multishift --shifts 0,0.0001 --refine
plain=$iterations
solve 1 --solver multishift --shifts 0,0.0001 --refine --deflate "$work/double.h5"
[ $((2 * iterations)) -lt "$plain" ] || complain "multishift: $iterations iterations, $plain without modes"
rhs=1 solve 1 --deflate "$work/double.h5"
[ "$iterations" -lt 250 ] || complain "one right-hand side: $iterations iterations"

for inner in none half; do
  for ranks in 1 2 4; do
    mass=0.02 solve $ranks --inner $inner --deflate "$work/half.h5"
    key residual_history "$report" >"$work/history.$ranks"
    cmp -s "$work/history.1" "$work/history.$ranks" || complain "inner $inner: another history on $ranks ranks"
  done
done

# A guess: the solution itself, that of another mass, both with modes.
solve 1 --output "$work/light.h5"
plain=$iterations
on 1 solve "$lattice" --mass 0.003 --source random:1 --rhs 3 --output "$work/near.h5" --quiet || complain "another mass: exit $?"
for ranks in 1 2; do
  for inner in none half; do
    solve $ranks --inner $inner --guess "$work/light.h5"
    [ "$iterations" -le 5 ] || complain "from its solution, inner $inner: $iterations iterations"
  done
done
solve 1 --guess "$work/near.h5"
[ "$iterations" -lt "$plain" ] || complain "from the solution of another mass: $iterations iterations, $plain without"
[ "$(key guess "$report")" = "\"$work/near.h5\"" ] || complain "the report does not name the guess"
solve 1 --guess "$work/near.h5" --deflate "$work/double.h5" --inner half
[ $((2 * iterations)) -lt "$plain" ] || complain "guess and modes: $iterations iterations, $plain without"

on 1 generate --dims 8x8x8x8 --start hot --seed 2 --output "$work/other.h5" --quiet
on 1 generate --dims 4x4x4x4 --start hot --seed 2 --output "$work/short.h5" --quiet
for ranks in 1 2; do
  refuses 2 'must have the lattice checksum of this run' $ranks solve "$work/other.h5" --mass 0.1 --deflate "$work/double.h5"
  refuses 2 'must be of this lattice, plaquette' $ranks solve "$work/other.h5" --mass 0.1 --source random:1 --rhs 3 --guess "$work/light.h5"
done
refuses 2 'must have the action of this run' 1 solve "$lattice" --mass 0.1 --action asqtad --u0 0.9 --deflate "$work/double.h5"
refuses 2 'must have the boundary of this run' 1 solve "$lattice" --mass 0.1 --boundary periodic --deflate "$work/double.h5"
refuses 2 'is of a 8x8x8x8 lattice, needed is one of 4x4x4x4' 1 solve "$work/short.h5" --mass 0.1 --deflate "$work/double.h5"
refuses 2 'is of a 8x8x8x8 lattice' 1 solve "$work/short.h5" --mass 0.1 --guess "$work/light.h5"
refuses 2 "must be of action 'naive' and boundary 'periodic'" 1 solve "$lattice" --mass 0.1 --boundary periodic --guess "$work/light.h5"
refuses 2 'shape' 1 solve "$lattice" --mass 0.1 --source random:1 --rhs 2 --guess "$work/light.h5"
refuses 2 'without --guess' 1 solve "$lattice" --mass 0.1 --solver multishift --shifts 0.1 --guess "$work/light.h5"
on 1 eigen "$work/short.h5" --modes 4 --tol 1e-15 --max-restarts 1 --output "$work/none.h5" --quiet 2>/dev/null
refuses 2 'must have modes that converged, none of its 4 did' 1 solve "$work/short.h5" --mass 0.1 --deflate "$work/none.h5"
finish
