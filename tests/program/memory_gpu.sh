#!/usr/bin/env bash
# The memory of a GPU is estimated as that of the host is (memory.sh). Skipped where there is no GPU.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/memory_near.sh"
cd "$work" || exit 1
space=device
on 1 generate --dims 32x16x16x32 --start cold -o a.h5 --precision single --quiet || complain "generate: exit $?"
on 1 solve a.h5 --mass 1 --max-iter 3 --backend cuda --quiet 2>err
got=$?
[ $got = 3 ] && grep -qE 'not available|GPU code needs|no CUDA' err && exit 77
on 1 eigen a.h5 --modes 6 --tol 1e-3 --store half --output low.h5 --quiet || complain "eigen: exit $?"
while read -r options; do
  for mass in 0.05 0.005; do
    holds "solve --mass $mass $options" solve a.h5 --mass $mass --tol 1e-9 --max-iter 3 $options
  done
done <<'END'
--backend cuda --source random:1 --rhs 4
--backend cuda --precision single --source random:1 --rhs 1
--backend cuda --inner single --source random:1 --rhs 4
--backend cuda --inner half --checkpoint c.h5 --checkpoint-every 2
--backend cuda --inner bf16 --deflate low.h5
--backend cuda --inner fixed
--backend tensor --packing stacked --inner half --source random:1 --rhs 16
--solver block --backend cuda --source random:1 --rhs 4
--solver block --backend cuda --inner half --source random:1 --rhs 4
--solver multishift --backend cuda --shifts 0.1,0.2,0.3
--solver multishift --backend cuda --shifts 0.1 --precision half --refine
--solver multishift --backend cuda --shifts 0.1,0.2,0.3 --precision single --refine
--action asqtad --backend cuda --inner half
END
holds "solve --solver auto" solve a.h5 --mass 0.005 --tol 1e-9 --max-iter 90 --backend cuda --solver auto --inner half \
  --source random:1 --rhs 4
holds eigen eigen a.h5 --modes 40 --max-restarts 1 --backend cuda
finish
