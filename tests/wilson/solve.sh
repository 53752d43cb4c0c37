#!/usr/bin/env bash
# solve with Wilson and domain-wall quarks: the same bits on every rank grid and thread count, every
# backend, precision and rounding of links to the tolerance; the Ward identity; m_res falls with Ls; what
# is not served is refused; and the numbers of another program for a lattice that lies beside the tree.
. "$(dirname "$0")/../program/common.sh"
lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
shared=${MINIDIRAC_SHARED_LATTICES:-}/lat.sample.l4448
export OMP_NUM_THREADS=1

# solved NAME RANKS ARGUMENTS...: report NAME.json, converged.
solved() {
  local name=$1 ranks=$2
  shift 2
  on "$ranks" solve --lattice "$lattice" "$@" --quiet --json "$work/$name.json" || complain "$*: exit $?"
  [ "$(key converged "$work/$name.json")" = true ] || complain "$*: not converged"
}
value() { key "$1" "$work/$2.json"; }

# below A B: A < B
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b && -a < b) }'; }

for what in "wilson --mass 0.1" "mobius --mass 0.1 --Ls 4"; do
  set -- $what
  for cut in "1 1" "1 2" "2 1" "4 1"; do
    read -r ranks threads <<<"$cut"
    name=$1.$ranks.$threads
    # shellcheck disable=SC2086
    solved $name $ranks --action $what --threads $threads --tol 1e-4
    for k in residual_history pion_correlator residuals iterations; do
      [ "$(value $k $name)" = "$(value $k $1.1.1)" ] || complain "$1: $k differs on $ranks ranks, $threads threads"
    done
  done
done
[ "$(value rhs wilson.1.1)" = 12 ] || complain "a point has $(value rhs wilson.1.1) right-hand sides"
close "$(value kappa wilson.1.1)" "$(awk 'BEGIN { printf "%.15g", 1 / 8.2 }')" 1e-14 || complain "kappa $(value kappa wilson.1.1)"
[ "$(value Ls mobius.1.1) $(value M5 mobius.1.1) $(value b5 mobius.1.1) $(value c5 mobius.1.1)" = "4 1.8 1.5 0.5" ] ||
  complain "the report's fifth dimension"

# Other ways to the same numbers.
ways() {
  local action=$1 k=0
  shift
  solved exact 1 --action $action --mass 0.1 --tol 1e-11 "$@"
  while read -r way; do
    k=$((k + 1))
    # shellcheck disable=SC2086
    solved way$k 1 --action $action --mass 0.1 --tol 1e-10 $way "$@"
    close "$(value pion_correlator way$k)" "$(value pion_correlator exact)" 1e-8 || complain "$action $way: another correlator"
  done
}
ways wilson <<'WAYS'
--backend cpu_ref
--inner single
--inner single --reconstruct 12
--reconstruct 12
--solver gcr --max-iter 20000
--solver auto
--solver block
--solver block --inner single
--solver fcg --precondition chebyshev --inner single
--solver gcr --precondition chebyshev
--solver bicgstab
--solver bicgstab --inner single --reconstruct 12
--inner half
--inner bf16 --reconstruct 12
WAYS
ways mobius --Ls 4 <<'WAYS'
--inner single
--solver block --inner half
--inner bf16
WAYS
for way in "" "--solver bicgstab"; do # of as many stencils each step
  # shellcheck disable=SC2086
  solved light$way 1 --action wilson --mass -0.5 $way
done
[ "$(value iterations "light--solver bicgstab")" -lt "$(value iterations light)" ] || complain "bicgstab takes more steps than cg"

# Files: a solution to begin from, a state to go on from, shifts of S S^dag.
solved out 2 --action wilson --mass 0.1 --output "$work/out.h5"
solved whole 1 --action wilson --mass 0.12
for way in "--inner single" "--solver bicgstab" "--solver block"; do
  # shellcheck disable=SC2086
  solved begun 1 --action wilson --mass 0.12 --guess "$work/out.h5" $way
  [ "$(value iterations begun)" -lt "$(value iterations whole)" ] || complain "a guess spares no iterations, $way"
  close "$(value pion_correlator begun)" "$(value pion_correlator whole)" 1e-8 || complain "$way: a guess changes the solution"
done
if python_with h5py numpy; then
  python3 - "$work/out.h5" "$(value pion_correlator out)" <<'PYTHON' || complain "the solution on file"
import h5py, json, numpy, sys
x = h5py.File(sys.argv[1])["/propagator/solution"]
assert x.shape == (12, 8, 4, 4, 4, 4, 3) and x.attrs["axes"] == b"rhs,t,z,y,x,spin,colour", (x.shape, x.attrs["axes"])
pion = (abs(x[:]) ** 2).sum(axis=(0, 2, 3, 4, 5, 6))
assert numpy.allclose(pion, json.loads(sys.argv[2]), rtol=1e-13)
PYTHON
fi
for way in wilson "mobius --Ls 2 --inner single"; do
  # shellcheck disable=SC2086
  {
    solved all 1 --action $way --mass 0.1 --source point:1,0,2,3
    on 2 solve --lattice "$lattice" --action $way --mass 0.1 --source point:1,0,2,3 --max-iter 20 --quiet \
      --checkpoint "$work/state" --checkpoint-every 7 2>/dev/null && complain "$way: converged in 20 iterations"
    solved rest 1 --action $way --mass 0.1 --source point:1,0,2,3 --checkpoint "$work/state" --resume
  }
  [ "$(value residual_history rest)" = "$(value residual_history all)" ] || complain "$way: a resumed history differs"
  [ "$(value pion_correlator rest)" = "$(value pion_correlator all)" ] || complain "$way: a resumed solve differs"
done
solved shifts 2 --action wilson --mass 0.1 --solver multishift --shifts 0,0.5 --output "$work/shift.h5"
solved refined 1 --action wilson --mass 0.1 --solver multishift --shifts 0,0.5 --precision single --refine
[ "$(grep -c '"relative_residual"' "$work/refined.json")" = 3 ] || complain "the rows of shifts"

# The Ward identity, also of a wall and of points, and m_res.
m_res=1
for slices in 4 8; do
  solved dwf$slices 1 --action domainwall --mass 0.2 --Ls $slices --M5 1.7 --tol 1e-12 --source wall:3
  below "$(value ward_deviation dwf$slices)" 1e-10 || complain "Ls $slices: Ward identity off by $(value ward_deviation dwf$slices)"
  below "$(value residual_mass dwf$slices)" $m_res || complain "m_res does not fall: $(value residual_mass dwf$slices)"
  m_res=$(value residual_mass dwf$slices)
done
solved shamir 1 --action mobius --b5 1 --c5 0 --mass 0.2 --Ls 8 --M5 1.7 --tol 1e-12 --source wall:3
for k in pion_correlator midpoint_correlator residual_mass; do
  close "$(value $k shamir)" "$(value $k dwf8)" 1e-13 || complain "Moebius with b5 1, c5 0: $k"
done
solved points 1 --action mobius --mass 0.3 --Ls 4 --imaginary-mu 0.1 --boundary periodic --source 'points:0,0,0,0;1,1,0,3'
below "$(value ward_deviation points)" 1e-8 || complain "two points: Ward identity off by $(value ward_deviation points)"

# Modes of S S^dag, which belong to a mass: on file and back, and to deflate with.
for way in "wilson --mass -0.7" "mobius --Ls 2 --mass 0.1"; do
  # shellcheck disable=SC2086
  {
    on 1 eigen "$lattice" --modes 3 --action $way --store single --output "$work/modes.h5" --force --quiet \
      --json "$work/modes.json" || complain "eigen $way: exit $?"
    [ "$(value converged modes) $(value operator modes)" = 'true "S S^dag"' ] || complain "eigen $way: the report"
    solved plain 1 --action $way --tol 1e-9
    solved deflated 1 --action $way --tol 1e-9 --deflate "$work/modes.h5"
  }
  [ "$(value iterations deflated)" -lt "$(value iterations plain)" ] || complain "$way: modes spare no iterations"
  close "$(value pion_correlator deflated)" "$(value pion_correlator plain)" 1e-7 || complain "$way: modes change the solution"
done
refuses 2 "must have the action of this run, 'mobius.*mass 0.2'" 1 solve --lattice "$lattice" --action mobius --Ls 2 \
  --mass 0.2 --deflate "$work/modes.h5"

# Refusals.
wilson="--lattice $lattice --action wilson --mass 0.1"
for way in "--output $work/x.lime" "--source file:$work/x.lime"; do
  # shellcheck disable=SC2086
  refuses 2 'is for staggered actions, got --action wilson' 1 solve $wilson $way
done
walls="--lattice $lattice --action mobius --mass 0.1 --Ls 4"
# shellcheck disable=SC2086
{
  refuses 2 'action wilson takes no --Ls' 1 solve $wilson --Ls 8
  refuses 2 'shifts of S S.dag must be 0 or more' 1 solve $wilson --solver multishift --shifts=-0.1
  refuses 2 'a mass is no shift of S S.dag' 1 solve $walls --solver multishift --shifts 0.1
  refuses 2 'solutions have the quark' 1 solve $walls --guess "$work/out.h5"
  refuses 2 'eigenvalues lie all around zero; take cg' 1 solve $walls --solver bicgstab
  refuses 2 'Hermitian; take cg' 1 solve --lattice "$lattice" --mass 0.1 --solver bicgstab
  refuses 2 'iterates in double or single, got half' 1 solve $wilson --solver bicgstab --inner half
  refuses 2 'bicgstab goes without --checkpoint' 1 solve $wilson --solver bicgstab --checkpoint "$work/x" --checkpoint-every 5
  refuses 2 'takes no --b5' 1 solve --lattice "$lattice" --action domainwall --mass 0.1 --b5 1.5
  refuses 2 'must have an inverse' 1 solve --lattice "$lattice" --action wilson --mass -4
  refuses 2 'have 12 right-hand sides, one a colour and spin' 1 solve $wilson --rhs 3
}
refuses 2 'action wilson needs --mass' 1 eigen "$lattice" --modes 2 --action wilson
refuses 2 'action naive takes no --mass' 1 eigen "$lattice" --modes 2 --mass 0.1
refuses 2 'store fixed8 is for colour vectors' 1 eigen "$lattice" --modes 2 --action wilson --mass 0.1 --store fixed8
refuses 2 'go to HDF5 alone' 1 eigen "$lattice" --modes 2 --action wilson --mass 0.1 --output "$work/m.lime"
study="measure --lattices $lattice --masses 0.1,0.2 --output $work/s.h5"
# shellcheck disable=SC2086
{
  refuses 2 'must all be staggered or all have four spins' 1 $study --actions naive,wilson
  refuses 2 'solver multishift is for staggered actions' 1 $study --actions wilson --solver multishift
  refuses 2 'none of the --actions takes --Ls' 1 $study --actions wilson --Ls 4
  refuses 2 'masses must lie in 1e-06 to 100, got -0.1' 1 measure --lattices "$lattice" --masses -0.1 --output "$work/s.h5"
}

# A study has the numbers of solve; benchmarks check before they time.
on 2 measure --lattices "$lattice" --masses 0.1,0.2 --actions wilson,mobius --Ls 4 --tol 1e-11 --rhs 5 \
  --output "$work/study.h5" --quiet --json "$work/study.json" || complain "measure: exit $?"
solved exact 1 --action mobius --mass 0.1 --tol 1e-11 --Ls 4
if python_with h5py; then
  close "[$(python3 -c "
import h5py
print(','.join('%.16e' % c for c in h5py.File('$work/study.h5')['study/pion'][0, 1, 0, 0, 0]))")]" \
    "$(value pion_correlator exact)" 1e-9 || complain "the study's correlator"
fi
on 2 measure --lattices "$lattice" --masses 0.1,0.2 --actions wilson,mobius --Ls 4 --tol 1e-11 --rhs 5 --resume \
  --output "$work/study.h5" --quiet --json "$work/resumed.json" || complain "resumed study: exit $?"
[ "$(key residual_mass "$work/study.json")" = "$(key residual_mass "$work/resumed.json")" ] || complain "resumed study: another m_res"
close "[$(key residual_mass "$work/study.json")]" "[$(value residual_mass exact)]" 1e-8 || complain "the study's m_res"
on 1 bench dirac --dims 4x4x4x4 --action mobius --Ls 4 --backends cpu_ref,cpu_simd --repetitions 1 --rhs 1,5 \
  --quiet --json "$work/dirac.json" || complain "bench dirac: exit $?"
[ "$(grep -c '"gflops"' "$work/dirac.json")" = 22 ] || complain "bench dirac: $(grep -c '"gflops"' "$work/dirac.json") rows"
for what in wilson "mobius --Ls 3 --magnetic 1"; do
  # shellcheck disable=SC2086
  on 2 validate --lattice "$lattice" --mass 0.3 --action $what --quiet --json "$work/validate.json" || complain "validate $what: exit $?"
  [ "$(key broken_bounds "$work/validate.json")" = 0 ] || complain "validate $what: bounds broken"
  [ "$(grep -c '"operation"' "$work/validate.json")" -ge 12 ] || complain "validate $what: $(grep -c '"operation"' "$work/validate.json") rows"
done
on 1 bench solver --dims 4x4x4x4 --action wilson --mass 0.2 --operators cpu_simd --inner none,single --solvers cg,block,gcr,bicgstab --rhs 2 \
  --repetitions 1 --tol 1e-9 --quiet --json "$work/solver.json" || complain "bench solver: exit $?"

# Another program's numbers, to what their digits hold.
[ -f "$shared" ] || { left_out lattices_of_another_code; finish; }
lattice=$shared
known() {
  local name=$1 correlator=$2 m_res=$3
  shift 3
  solved "$name" 1 --action "$@" --tol 1e-12
  close "$(value pion_correlator "$name")" "[${correlator// /,}]" 1e-10 || complain "$*: $(value pion_correlator "$name")"
  [ -z "$m_res" ] || close "[$(value residual_mass "$name")]" "[$m_res]" 1e-9 || complain "$*: m_res $(value residual_mass "$name")"
}
known w1 '8.72277446290e-01 4.45773957205e-02 5.30812297100e-03 7.91989544478e-04 2.39871721406e-04 6.34078690376e-04 4.51460205489e-03 4.09749329443e-02' '' wilson --mass 0.1
known w2 '1.05361655016e+00 7.12605082293e-02 1.19948848871e-02 2.75110368151e-03 1.21268645520e-03 2.20978371007e-03 1.01722609214e-02 6.53064872660e-02' '' wilson --mass -0.2
known d8 '5.80161633750e-01 2.65360888786e-01 1.11341490640e-01 6.45896699412e-02 4.84454937890e-02 4.77924951629e-02 8.84482130257e-02 2.53653981864e-01' 1.339774098384e-02 domainwall --mass 0.1 --Ls 8
known m12 '5.80767349416e-01 2.70655472760e-01 1.16847262547e-01 6.95446464636e-02 5.21989304765e-02 5.09267230050e-02 9.18561724256e-02 2.59156350569e-01' 1.934109305622e-04 mobius --mass 0.1
finish
