#!/usr/bin/env bash
# minidirac measure on a GPU: what the host measures, by every way of solving; groups of ranks too.
# Skipped where there is no GPU.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
set -f # patterns are for the program
on 1 generate --dims 8x8x8x8 --start hot --seed 1 --output cfg1.h5 --quiet || complain "generate: exit $?"
on 1 generate --dims 8x8x8x8 --start hot --seed 2 --output cfg2.h5 --quiet || complain "generate: exit $?"
study="measure --lattices cfg*.h5 --actions naive,hisq --masses 0.3,0.5 --vectors 7 --tol 1e-11 --quiet --force --momenta 1,0,0;0,0,0"
sources='point:1,0,2,3 colour:1,4 random:1'
on 1 $study --sources "$sources" --backend cuda --output probe.h5 2>err
got=$?
[ $got = 3 ] && grep -qE 'not available|GPU code needs|no CUDA' err && exit 77
[ $got = 0 ] || complain "cuda: exit $got, $(cat err)"
on 1 $study --sources "$sources" --backend cpu_simd --output host.h5 --json host.json || complain "host: exit $?"
all() { sed -n "s/.*\"$1\":\t*\([^,]*.*[^,]\),*$/\1/p" "$2" | tr -d '[]' | paste -sd,; }
for ranks in 1 2; do
  for way in "--backend cuda" "--backend cuda --inner half" "--backend cuda --solver block" "--backend tensor --packing stacked" \
    "--backend tensor --packing stacked --inner half --rhs 8" "--backend cuda --groups $ranks"; do
    on $ranks $study --sources "$sources" $way --output gpu.h5 --json gpu.json || complain "$way on $ranks ranks: exit $?"
    for k in correlator chiral_condensate; do
      close "$(all $k gpu.json)" "$(all $k host.json)" 1e-7 || complain "$way on $ranks ranks: $k"
    done
  done
done
# Links are made where the operator is, whatever packing it needs.
for operator in cuda tensor:stacked; do
  on 1 bench solver --dims 8x8x8x8 --mass 1 --action hisq --operators $operator --rhs 8 --repetitions 1 --tol 1e-6 --quiet \
    --json links.json || complain "bench solver --operators $operator: exit $?"
  [ "$(key smear_on links.json)" = '"gpu"' ] || complain "bench solver --operators $operator made its links on the host"
done
finish
