#!/usr/bin/env bash
# solve on gauge configurations of another code: the known pion correlator, on every rank count,
# backend and precision; the same residual history to the last bit on 1 to 8 ranks.
. "$(dirname "$0")/common.sh"
lattices=${MINIDIRAC_SHARED_LATTICES:-}
[ -f "$lattices/lat.sample.l4448" ] || { echo "no shared lattices at '$lattices'"; exit 77; }

expected='[2.560955983842016, 1.034464452603123, 0.5897258600773996, 0.3491443973228939, 0.2298115278269385, 0.2840038752248707, 0.4973365186200647, 1.024466580197261]'
for ranks in 1 2 4 8; do
  for threads in 1 2; do
    on $ranks solve --lattice "$lattices/lat.sample.l4448" --mass 0.1 --tol 1e-12 --threads $threads \
      --quiet --json "$work/$ranks.$threads.json" || complain "$ranks ranks: exit $?"
    report=$work/$ranks.$threads.json
    close "$(key pion_correlator "$report")" "$expected" 1e-10 ||
      complain "$ranks ranks, $threads threads: correlator $(key pion_correlator "$report")"
    [ "$(key converged "$report")" = true ] || complain "$ranks ranks: not converged"
    for k in residual_history pion_correlator residuals iterations; do
      [ "$(key $k "$report")" = "$(key $k "$work/1.1.json")" ] || complain "$k differs on $ranks ranks, $threads threads"
    done
  done
done

on 2 solve --lattice "$lattices/lat.sample.l4448.scidac" --mass 0.1 --tol 1e-12 --quiet --json "$work/scidac.json"
close "$(key pion_correlator "$work/scidac.json")" "$expected" 1e-10 || complain "SciDAC file: another correlator"

# Three even sites a row; a rank grid that cuts it; one that cannot.
for ranks in 1 3; do
  on $ranks solve --lattice "$lattices/lat.sample.hisq.f211b670.l6666" --mass 0.05 --quiet --json "$work/hisq.$ranks.json" ||
    complain "hisq lattice on $ranks ranks: exit $?"
done
[ "$(key residual_history "$work/hisq.1.json")" = "$(key residual_history "$work/hisq.3.json")" ] || complain "hisq: histories differ"
refuses 2 'local extents, got 6x6x6x6 with 2 ranks; valid rank grids: none' 2 solve --lattice "$lattices/lat.sample.hisq.f211b670.l6666" --mass 0.05
finish
