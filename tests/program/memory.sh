#!/usr/bin/env bash
# Memory is estimated before the work: the estimate is near the measured peak, and what does not
# fit is refused at once with both numbers.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/memory_near.sh"
cd "$work" || exit 1
# glibc's own default, but fixed: else it keeps up to twice the largest array that was ever freed, or not, from
# run to run (66 or 71 MB of measure), where the estimate is of what is held.
export MALLOC_MMAP_THRESHOLD_=131072

on 1 generate --dims 16x16x16x16 --start cold -o a.h5 --precision single --quiet --json r.json || complain "generate: exit $?"
near 0.7 1.1 generate
on 1 generate --dims 16x8x8x16 --start cold -o small.h5 --precision single --quiet || complain "generate: exit $?"
on 1 info a.h5 --quiet --json r.json || complain "info: exit $?"
near 0.7 1.1 info
on 1 convert a.h5 b.lime --quiet --json r.json || complain "convert: exit $?"
near 0.7 1.1 convert
on 1 generate --from a.h5 --sweeps 1 -o from.h5 --precision single --quiet --json r.json 2>err || complain "generate --from: $(cat err)"
near 0.7 1.2 "generate --from"
on 1 solve a.h5 --mass 1 --tol 0.01 --source random:1 --rhs 4 --output s.h5 --quiet && on 1 convert s.h5 s.lime --quiet --json r.json 2>err || complain "convert: exit $?"
near 0.7 1.1 "convert, solutions"
on 1 eigen small.h5 --modes 6 --tol 1e-4 --store half --output low.h5 --quiet || complain "eigen: exit $?"
on 1 eigen small.h5 --modes 24 --max-restarts 1 --output modes.h5 --store double --quiet 2>err
on 1 convert modes.h5 modes.lime --quiet --json r.json || complain "convert: exit $?"
near 0.7 1.3 "convert, modes"
# Light masses bring deflation on the way, of other directions in block CG, and refinements to what a
# solve takes.
while read -r options; do
  for mass in 0.05 0.005; do
    holds "solve --mass $mass $options" solve small.h5 --mass $mass --tol 1e-9 --max-iter 3 $options
  done
done <<'END'
--backend cpu_ref
--backend cpu_simd --precision single --output p.h5 --force --source random:1 --rhs 4
--backend cpu_simd --inner single --source random:1 --rhs 4
--backend cpu_simd --inner half --source random:1 --rhs 8 --checkpoint c.h5 --checkpoint-every 2
--backend cpu_simd --inner bf16 --deflate low.h5
--backend cpu_simd --inner half --deflate low.h5 --guess p.h5 --source random:1 --rhs 4
--backend cpu_simd --inner fixed
--backend cpu_simd --inner auto --deflate low.h5
--backend tensor_emu --packing block8 --precision half --source random:1 --rhs 1
--solver block --source random:1 --rhs 4
--solver block --backend cpu_simd --inner half --source random:1 --rhs 4
--solver fcg --precondition chebyshev --inner half --backend cpu_simd --source random:1 --rhs 4
--solver gcr --precondition chebyshev --backend cpu_simd
--solver multishift --shifts 0.1,0.2,0.3
--solver multishift --shifts 0.1 --precision half --refine
--solver multishift --shifts 0.1,0.2,0.3 --precision single --refine
--action asqtad --backend cpu_simd --inner half
END
for inner in none half; do # iterations enough for both ways to solve
  holds "solve --solver auto --inner $inner" solve small.h5 --mass 0.005 --tol 1e-9 --max-iter 90 --backend cpu_simd \
    --solver auto --inner $inner --source random:1 --rhs 4
done
holds "solve, large" solve a.h5 --mass 0.005 --tol 1e-9 --max-iter 3 --backend cpu_simd --inner half
on 2 solve a.h5 --mass 1 --tol 0.01 --max-iter 2 --quiet --json r.json 2>err
near 0.85 1.25 "solve on 2 ranks"
study="measure --lattices small.h5 --sources random:1 --vectors 4 --tol 0.01 --output m.h5 --force"
holds "measure" $study --masses 1,2
holds "measure --inner half" $study --masses 1,0.2 --inner half --solver cg
holds "measure --actions hisq" $study --masses 1,2 --actions hisq
holds validate validate small.h5 --mass 0.5 --backend cpu_simd --precision half --max-iter 5
holds "validate, 16 right-hand sides" validate small.h5 --mass 0.5 --backend tensor_emu --packing stacked --precision half --max-iter 1
holds eigen eigen small.h5 --modes 40 --max-restarts 1
on 1 bench dirac --dims 16x16x16x16 --backends cpu_simd --precisions double --rhs 8 --repetitions 1 --quiet --json r.json
near 0.6 1.2 "bench dirac"
holds "bench solver" bench solver --lattice small.h5 --mass 1 --tol 0.01 --inner none --rhs 64 --repetitions 1

both='needs [0-9.]+ GB of memory for RANKS of host .*, available are [0-9.]+ GB \('
refuses 3 "generate ${both/RANKS/1 rank}" 1 generate --dims 512x512x512x512 -o x.h5
refuses 3 "generate ${both/RANKS/2 ranks}" 2 generate --dims 512x512x512x512 --start hot -o x.h5
refuses 3 "bench dirac ${both/RANKS/1 rank}" 1 bench dirac --dims 512x512x512x512
refuses 3 "bench solver ${both/RANKS/1 rank}" 1 bench solver --dims 512x512x512x512
refuses 3 "bench copy ${both/RANKS/2 ranks}" 2 bench copy --sizes 1,1000000
refuses 3 "needs [0-9.]+ GB of memory for 1 rank .*available are" 1 bench gemm --shapes 4000000x4000000x64 --kernels openblas
refuses 3 "bench gemm ${both/RANKS/2 ranks}" 2 bench gemm --shapes 4000000x4000000x64 --kernels summa --baseline off
# A file of holes: a whole header, links that take no disk.
printf 'BEGIN_HEADER\nDATATYPE = 4D_SU3_GAUGE_3x3\nDIMENSION_1 = 256\nDIMENSION_2 = 256\nDIMENSION_3 = 256\nDIMENSION_4 = 512\nFLOATING_POINT = IEEE32BIG\nEND_HEADER\n' >huge
if truncate -s $(($(stat -c %s huge) + 256 * 256 * 256 * 512 * 288)) huge 2>/dev/null; then
  refuses 3 "loading the lattice ${both/RANKS/1 rank}" 1 info huge
  refuses 3 "solve ${both/RANKS/2 ranks}" 2 solve --lattice huge --mass 0.1
  refuses 3 "eigen ${both/RANKS/1 rank}" 1 eigen huge --modes 4
  refuses 3 "validate ${both/RANKS/1 rank}" 1 validate --lattice huge
fi
limit='needs [0-9.]+ GB of memory on rank 0, its limit RLIMIT_AS leaves [0-9.]+ GB'
(failures=0; ulimit -v 6000000 # links and heatbath alone fit
  refuses 3 "^minidirac: error: bench suite $limit" 1 bench suite --class M --parts cg16 --inner none
  ulimit -v 2500000
  refuses 3 "solve $limit" 1 solve --lattice a.h5 --mass 1 --source random:1 --rhs 128
  refuses 3 "^minidirac: error: bench solver $limit" 1 bench solver --lattice a.h5 --rhs 128 --inner none
  refuses 3 "bench dirac $limit" 1 bench dirac --kernel matvec --counts 64,100000000 # 9.6 GB, the largest array 3.6
  # One of several that does not fit is left out.
  on 1 bench solver --lattice a.h5 --mass 1 --tol 0.01 --rhs 1,128 --inner none --repetitions 1 >out 2>err ||
    complain "bench solver, one fits: $(cat err)"
  grep -qE "not timed: bench solver $limit" out || complain "bench solver, one does not fit: $(cat out)"
  [ $failures = 0 ]) || complain "a limit of the address space"
finish
