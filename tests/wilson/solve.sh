#!/usr/bin/env bash
# solve with Wilson and domain-wall quarks: the same bits on every rank grid and thread count, every
# backend, precision and rounding of links to the tolerance; the Ward identity; m_res falls with Ls; what
# is not served is refused; and the numbers of another program for a lattice that lies beside the tree.
. "$(dirname "$0")/common.sh"
shared=${MINIDIRAC_SHARED_LATTICES:-}/lat.sample.l4448

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
  solved "light$way" 1 --action wilson --mass -0.5 $way
done
[ "$(value iterations "light--solver bicgstab")" -lt "$(value iterations light)" ] || complain "bicgstab takes more steps than cg"

# A guess serves right-hand sides that are solved for one after the other.
two="--action wilson --mass 0.3 --source random:1 --rhs 2 --inner single"
# shellcheck disable=SC2086
{
  solved first 1 $two --tol 1e-6 --output "$work/guess.h5"
  solved second 1 $two --tol 1e-8 --guess "$work/guess.h5"
}
[ "$(value iterations second)" -lt "$(value iterations first)" ] || complain "a guess: $(value iterations second) iterations"

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
solved odd 1 --action domainwall --mass 0.3 --Ls 3
[ -z "$(value residual_mass odd)$(value ward_deviation odd)" ] || complain "three slices have no middle, got $(value residual_mass odd)"
# A CPU has no packing, and parts are the solver's: none and auto are the same run.
for packing in auto none; do
  solved $packing 1 --action domainwall --mass 0.3 --Ls 3 --backend cpu_simd --packing $packing
  [ "$(value rhs_block $packing)" = 1 ] || complain "--packing $packing: $(value rhs_block $packing) right-hand sides at once"
done
for k in residual_history pion_correlator residuals; do
  [ "$(value $k none)" = "$(value $k auto)" ] || complain "--packing none: $k is not that of auto"
done
on 1 measure --lattices "$lattice" --actions domainwall --Ls 3 --masses 0.2,0.3 --quiet --output "$work/odd.h5" --json "$work/odd_study.json" ||
  complain "measure of three slices and two masses: exit $?"
on 1 generate --quiet --dims 2x2x2x2 --start hot --output "$work/two.h5" || complain "a lattice of two time slices"
lattice=$work/two.h5 solved two 1 --action domainwall --mass 0.3 --Ls 4
below "$(value ward_deviation two)" 1e-8 || complain "two time slices: Ward identity off by $(value ward_deviation two)"
[ -z "$(value residual_mass two)" ] || complain "two time slices have none without contact terms, got $(value residual_mass two)"
solved points 1 --action mobius --mass 0.3 --Ls 4 --imaginary-mu 0.1 --boundary periodic --source 'points:0,0,0,0;1,1,0,3'
below "$(value ward_deviation points)" 1e-8 || complain "two points: Ward identity off by $(value ward_deviation points)"

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
  refuses 2 'momenta needs correlators' 1 solve $wilson --solver multishift --shifts 0.1 --momenta 1,0,0
  refuses 2 'a mass is no shift of S S.dag' 1 solve $walls --solver multishift --shifts 0.1
  refuses 2 'solutions have the quark' 1 solve $walls --guess "$work/out.h5"
  refuses 2 'eigenvalues lie all around zero; take cg' 1 solve $walls --solver bicgstab
  refuses 2 'Hermitian; take cg' 1 solve --lattice "$lattice" --mass 0.1 --solver bicgstab
  refuses 1 'stalled at .*raise --tol, or take --solver cg' 1 solve --lattice "$lattice" --action wilson --mass -1.5 --source random:1 --rhs 2 \
    --solver bicgstab
  refuses 2 'iterates in double or single, got half' 1 solve $wilson --solver bicgstab --inner half
  refuses 2 'bicgstab goes without --checkpoint' 1 solve $wilson --solver bicgstab --checkpoint "$work/x" --checkpoint-every 5
  refuses 2 'takes no --b5' 1 solve --lattice "$lattice" --action domainwall --mass 0.1 --b5 1.5
  refuses 2 'both 0, which leaves no links in M' 1 solve --lattice "$lattice" --action mobius --mass 0.1 --b5 0 --c5 0
  refuses 2 'must have an inverse' 1 solve --lattice "$lattice" --action wilson --mass -4
  refuses 2 'have 12 right-hand sides, one a colour and spin' 1 solve $wilson --rhs 3
}
refuses 2 'action wilson needs --mass' 1 eigen "$lattice" --modes 2 --action wilson
refuses 2 'mass must lie in -4 to 100, got -5' 1 eigen "$lattice" --modes 2 --action wilson --mass -5
refuses 2 'action naive takes no --mass' 1 eigen "$lattice" --modes 2 --mass 0.1
refuses 2 'store fixed8 is for colour vectors, got .*; take half' 1 eigen "$lattice" --modes 2 --action wilson --mass 0.1 --store fixed8
refuses 2 'go to HDF5 alone' 1 eigen "$lattice" --modes 2 --action wilson --mass 0.1 --output "$work/m.lime"
study="measure --lattices $lattice --masses 0.1,0.2 --output $work/s.h5"
# shellcheck disable=SC2086
{
  refuses 2 'must all be staggered or all have four spins' 1 $study --actions naive,wilson
  refuses 2 'solver multishift is for staggered actions' 1 $study --actions wilson --solver multishift
  refuses 2 'none of the --actions takes --Ls' 1 $study --actions wilson --Ls 4
  refuses 2 'masses must lie in 1e-06 to 100, got -0.1' 1 measure --lattices "$lattice" --masses -0.1 --output "$work/s.h5"
}

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
