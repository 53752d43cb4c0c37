#!/usr/bin/env bash
# solve --solver multishift and block: rows of the report, exit codes, refusals.
. "$(dirname "$0")/../program/common.sh"
export OMP_NUM_THREADS=1 # small lattices
on 1 generate --dims 4x4x4x8 --start hot --seed 4 -o "$work/hot.h5" --quiet || complain "generate: exit $?"
for ranks in 1 2; do
  on $ranks solve --lattice "$work/hot.h5" --mass 0.1 --solver multishift --shifts 0.1,0,0.01 --tol 1e-11 \
    --precision single --refine --quiet --json "$work/$ranks.json" || complain "$ranks ranks: exit $?"
done
for k in shift iterations refine_iterations iterated_residual relative_residual converged; do
  [ "$(grep -c "\"$k\"" "$work/1.json")" -ge 3 ] || complain "no $k in the rows"
done
[ "$(grep -E 'iterat|residual' "$work/1.json")" = "$(grep -E 'iterat|residual' "$work/2.json")" ] ||
  complain "shifts differ on 2 ranks"
with="solve --lattice $work/hot.h5 --mass 0.1"
refuses 1 'true residual of every shift must be at most 1e-11, stalled at .*--refine' 1 $with --solver multishift \
  --shifts 0,1 --tol 1e-11 --precision half
reached=0
for tol in 2e-15 2.2e-15 2.4e-15; do # what CG gets to, from the true residual again, refinements do too
  tight="solve --lattice $work/hot.h5 --mass 0.3 --source random:2 --rhs 2 --tol $tol --quiet"
  on 1 $tight --json "$work/cg.json" 2>"$work/err" || continue
  reached=$((reached + 1))
  on 1 $tight --solver multishift --shifts 0,0.1 --refine || complain "--refine to $tol: exit $?"
done
[ $reached -gt 0 ] || complain "CG gets to none of these"
refuses 2 'need each other' 1 $with --solver multishift
refuses 2 'need each other' 1 $with --shifts 1,2
refuses 2 'need each other' 1 $with --refine
refuses 2 'mass\^2 \+ shift > 0, got -0.5' 2 $with --solver multishift --shifts 1,-0.5
refuses 2 'shifts must be a list of finite numbers .*got .x.' 1 $with --solver multishift --shifts 1,x
refuses 2 'goes without --inner' 1 $with --solver multishift --shifts 1 --inner half
refuses 2 'point must be even' 1 $with --solver multishift --shifts 1 --source point:1,0,0,0
on 2 $with --solver block --source random:1 --rhs 4 --tol 1e-11 --quiet --json "$work/block.json" || complain "block: exit $?"
[ "$(key converged "$work/block.json")" = true ] || complain "block: not converged"
on 2 $with --solver block --inner half --source random:1 --rhs 4 --tol 1e-11 --quiet --json "$work/mixed.json" \
  --output "$work/x.h5" || complain "mixed block: exit $?"
[ "$(key converged "$work/mixed.json")" = true ] || complain "mixed block: not converged"
[ "$(key block_rank "$work/mixed.json")" = 4 ] || complain "mixed block: rank $(key block_rank "$work/mixed.json")"
on 1 generate --dims 2x2x2x2 --start hot --seed 4 -o "$work/small.h5" --quiet || complain "generate: exit $?"
for inner in '' '--inner half'; do # of 24 unknowns, more right-hand sides than which leave a residual of zero
  on 1 solve --lattice "$work/small.h5" --mass 0.1 --solver block $inner --source random:1 --rhs 40 --tol 1e-11 --quiet \
    --json "$work/small.json" || complain "24 unknowns $inner: exit $?"
  [[ $(key block_rank "$work/small.json") =~ ^[1-9][0-9]*$ ]] || complain "24 unknowns $inner: rank $(key block_rank "$work/small.json")"
done
# Rounding leads block CG astray: it says so before the iterations run out, and auto leaves it for CG in step.
on 1 generate --dims 4x4x2x2 --start hot --seed 5 -o "$work/few.h5" --quiet || complain "generate: exit $?"
astray="solve --lattice $work/few.h5 --mass 3e-4 --inner bf16 --source random:2 --rhs 16 --tol 1e-10 --max-iter 3000 --quiet"
on 1 $astray --solver block 2>"$work/err"
! grep 'raise --max-iter' "$work/err" || complain "block CG: no stall"
on 1 $astray --solver auto --json "$work/auto.json" || complain "auto, astray: exit $?"
[[ $(key solver_reason "$work/auto.json") = *'; at iteration 193 block was not done"' ]] ||
  complain "auto, astray: $(key solver_reason "$work/auto.json")"
on 1 $with --solver auto --inner half --source random:1 --rhs 4 --tol 1e-10 --guess "$work/x.h5" --json "$work/auto.json" \
  >"$work/auto.out" || complain "auto from a guess: exit $?"
[ "$(key iterations "$work/auto.json")" = 0 ] || complain "a guess that solves the system was iterated on"
[ "$(key solver_chosen "$work/auto.json")" = '"cg"' ] || complain "auto: chose $(key solver_chosen "$work/auto.json")"
grep -q '^chosen  *cg: 4 right-hand sides, at most' "$work/auto.out" || complain "auto: no reason"
refuses 2 'auto goes without --checkpoint' 1 $with --solver auto --checkpoint "$work/c.h5" --checkpoint-every 9
refuses 2 'block CG works with fields in double, got single' 2 $with --solver block --precision single
refuses 2 '2 to 64 right-hand sides, got 1' 1 $with --solver block --source random:1
finish
