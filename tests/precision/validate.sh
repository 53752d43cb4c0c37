#!/usr/bin/env bash
# validate: every bound holds on known lattices, the same numbers on every rank count,
# JSON and CSV carry the rows, and what cannot be served is refused.
. "$(dirname "$0")/../program/common.sh"
export OMP_NUM_THREADS=1 # small lattices
. "$(dirname "$0")/../program/golden_correlators.sh"
shared=${MINIDIRAC_SHARED_LATTICES:-}/lat.sample.l4448
lattice=$own_lattice
# A file in single precision, whose links are unitary to 4e-7 only: that too must be within the bounds.
if [ -f "$shared" ]; then
  on 1 validate --lattice "$shared" --max-iter 50 --quiet --json "$work/shared.json" || complain "another code's lattice: exit $?"
  [ "$(key broken_bounds "$work/shared.json")" = 0 ] || complain "broken bounds on another code's lattice"
else
  left_out lattices_of_another_code
fi
on 1 validate --lattice "$source_dir/inputs/beta5.9_6x4x8x10.nersc" --backend cpu_simd --max-iter 5 --quiet --json "$work/single.json" 2>"$work/err" ||
  complain "lattice in single precision: exit $?"
grep -q 'must reach 1e-12, got .* after 5 iterations; raise --max-iter' "$work/err" || complain "a reference cut short: $(cat "$work/err")"

for ranks in 1 2; do
  on $ranks validate --lattice "$lattice" --max-iter 400 --quiet --json "$work/$ranks.json" \
    --csv "$work/$ranks.csv" --solver-csv "$work/$ranks.solver.csv" || complain "$ranks ranks: exit $?"
done
cmp -s "$work/1.csv" "$work/2.csv" || complain "rows differ on 2 ranks: $(diff "$work/1.csv" "$work/2.csv" | head -4)"
[ "$(key broken_bounds "$work/1.json")" = 0 ] || complain "broken bounds"
# What the rounding of half and single costs this lattice does not depend on the machine: the links
# as stored, to the last digit.
for number in 0.571834509795188 0.57183451; do
  grep -q "\"plaquette\":.*$number" "$work/1.json" || complain "no plaquette $number among the links"
done
cmp -s "$work/1.solver.csv" "$work/2.solver.csv" || complain "solvers differ on 2 ranks"
head -1 "$work/1.solver.csv" | grep -q "iterations,reachable_residual,correlator_percent,residual_history" || complain "CSV of the solvers"
for word in cpu_simd half bf16 fixed single Deo Doe MdagM antisymmetry; do
  grep -q "$word" "$work/1.csv" || complain "no '$word' in the CSV"
done
head -1 "$work/1.csv" | grep -q '^backend,packing,precision,reconstruct,rhs,operation,action,rel_l2_error' || complain "CSV header"
on 1 validate --lattice "$lattice" --backend cpu_simd --precision half --reconstruct 12 --transport mpi --max-iter 50 --json - \
  >"$work/one.json" || complain "one case: exit $?"
[ "$(grep -c '"operation"' "$work/one.json")" = 4 ] || complain "one case has $(grep -c '"operation"' "$work/one.json") rows"
on 1 validate --lattice "$lattice" --backend tensor_emu --precision half --max-iter 5 --quiet --solver-csv "$work/tiles.csv" ||
  complain "tiles: exit $?"
[ "$(grep -c '^tensor_emu,[a-z0-9]*,\(half,none\|double,half\),5,' "$work/tiles.csv")" = 2 ] || complain "no solves by tiles: $(cut -c1-40 "$work/tiles.csv")"
for k in reachable_residual correlator_percent unitarity_deviation histogram; do
  grep -q "\"$k\"" "$work/one.json" || complain "no $k in the report"
done

refuses 2 'validate needs --lattice' 1 validate
refuses 2 'no backend of this build serves --backend cpu_ref .*--precision half.*; leave one of them out' 2 validate --lattice "$lattice" \
  --backend cpu_ref --precision half
# Where only a device serves, it is what is missing; without its code, the build or the transport.
for only in "--reconstruct 8" "--transport staged"; do
  on 1 validate --lattice "$lattice" $only --max-iter 5 --quiet 2>"$work/err"
  [ $? = 2 ] || continue
  grep -q 'is passed over' "$work/err" && complain "$only: exit 2 though a backend of this build serves it"
  [ "$only" = "--reconstruct 8" ] || grep -q 'transport staged carries no fields of the others' "$work/err" || complain "$only: $(cat "$work/err")"
done
refuses 2 'backend must be one of all.cpu_ref.*nosuch' 1 validate --lattice "$lattice" --backend nosuch
finish
