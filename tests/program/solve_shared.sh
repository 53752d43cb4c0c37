#!/usr/bin/env bash
# solve on known gauge configurations: the pion correlator, on every rank count, backend and precision;
# the same residual history to the last bit on 1 to 8 ranks. Configurations of another code are taken
# too where they lie beside the tree.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/golden_correlators.sh"
shared=${MINIDIRAC_SHARED_LATTICES:-}
[ -f "$shared/lat.sample.l4448" ] || { shared= && left_out lattices_of_another_code; }

# same_everywhere LATTICE EXPECTED
same_everywhere() {
  local name report
  name=$(basename "$1")
  # Threads on one rank, on two, and ranks alone.
  for cut in "1 1" "1 2" "2 1" "2 2" "4 1" "8 1"; do
    read -r ranks threads <<<"$cut"
    report=$work/$name.$ranks.$threads.json
    on $ranks solve --lattice "$1" --mass 0.1 --tol 1e-12 --threads $threads \
      --quiet --json "$report" || complain "$name, $ranks ranks: exit $?"
    close "$(key pion_correlator "$report")" "$2" 1e-10 ||
      complain "$name, $ranks ranks, $threads threads: correlator $(key pion_correlator "$report")"
    [ "$(key converged "$report")" = true ] || complain "$name, $ranks ranks: not converged"
    for k in residual_history pion_correlator residuals iterations; do
      [ "$(key $k "$report")" = "$(key $k "$work/$name.1.1.json")" ] ||
        complain "$name: $k differs on $ranks ranks, $threads threads"
    done
  done
}
same_everywhere "$own_lattice" "$own_correlator"
[ -z "$shared" ] || same_everywhere "$shared/lat.sample.l4448" "$shared_correlator"

# The same links from a file of another format.
if [ -n "$shared" ]; then
  on 2 solve --lattice "$shared/lat.sample.l4448.scidac" --mass 0.1 --tol 1e-12 --quiet --json "$work/scidac.json"
  close "$(key pion_correlator "$work/scidac.json")" "$shared_correlator" 1e-10 || complain "SciDAC file: another correlator"
fi
# And as a study of two lattices, which are one.
if [ -n "$shared" ]; then
  on 2 measure --lattices "$shared/lat.sample.l4448 $shared/lat.sample.l4448.scidac" --allow-repeats --masses 0.1,0.2 --tol 1e-12 --groups 2 \
    --output "$work/study.h5" --quiet --json "$work/study.json" || complain "measure: exit $?"
  close "$(key correlator "$work/study.json")" "$shared_correlator" 1e-10 || complain "measure: $(key correlator "$work/study.json")"
fi
on 2 measure --lattices "$own_lattice" --masses 0.1,0.2 --tol 1e-12 --groups 2 --output "$work/own-study.h5" --quiet --json "$work/study.json" ||
  complain "measure: exit $?"
close "$(key correlator "$work/study.json")" "$own_correlator" 1e-10 || complain "measure: $(key correlator "$work/study.json")"
on 2 convert "$own_lattice" "$work/own.h5" --quiet || complain "convert: exit $?"
on 2 solve --lattice "$work/own.h5" --mass 0.1 --tol 1e-12 --quiet --json "$work/h5.json"
close "$(key pion_correlator "$work/h5.json")" "$own_correlator" 1e-10 || complain "HDF5 file: another correlator"

# Three even sites a row; a rank grid that cuts it; one that cannot.
on 1 generate --dims 6x6x6x6 --start hot --seed 6 --quiet --output "$work/l6666.h5" || complain "generate: exit $?"
for lattice in "$work/l6666.h5" ${shared:+"$shared/lat.sample.hisq.f211b670.l6666"}; do
  for ranks in 1 3; do
    on $ranks solve --lattice "$lattice" --mass 0.05 --quiet --json "$work/six.$ranks.json" ||
      complain "$lattice on $ranks ranks: exit $?"
  done
  [ "$(key residual_history "$work/six.1.json")" = "$(key residual_history "$work/six.3.json")" ] ||
    complain "$lattice: histories differ"
  refuses 2 'local extents, got 6x6x6x6 with 2 ranks; valid rank grids: none' 2 solve --lattice "$lattice" --mass 0.05
done
finish
