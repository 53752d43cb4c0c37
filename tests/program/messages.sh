#!/usr/bin/env bash
# What the program says to a word that it does not know, to a number that does not fit, and to
# combinations that lack something: the rule, the value, what to do.
. "$(dirname "$0")/common.sh"
lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
s="solve $lattice --mass 0.1"

# Unknown words and the nearest known one.
refuses 2 "'sovle' is not known.*did you mean 'solve'\?" 2 sovle
refuses 2 "'frobnicate' is not known; see minidirac --help$" 1 frobnicate
refuses 2 "got 'gmem'.*did you mean 'gemm'\?" 1 bench gmem
refuses 2 "option '--presicion'.*did you mean 'precision'\?" 1 $s --presicion half
refuses 2 "precision must be one of .*got 'hafl'; did you mean 'half'\?" 1 $s --precision hafl
refuses 2 "backend must be one of .*did you mean 'cpu_simd'\?" 1 $s --backend cpu-simd
refuses 2 "did you mean 'openblas'\?" 1 bench gemm --kernels opneblas
refuses 2 "packings must be one of .*got 'blok8'; did you mean 'block8'\?" 1 bench dirac --packings none,blok8
refuses 2 "operators must be one of .*did you mean 'tensor'\?" 1 bench solver --dims 4x4x4x4 --operators tenser:stacked
refuses 2 "source must be one of point.wall.random.points.*, got 'walls'; did you mean 'wall'\?" 1 $s --source walls:1

refuses 2 "action must be one of .*got 'HISQ'; did you mean 'hisq'\?$" 1 $s --action HISQ
refuses 2 "got 'Solve'|'Solve' is not known.*did you mean 'solve'\?" 1 Solve
refuses 2 "backend must be one of .*did you mean 'cuda' or 'tensor'\?" 1 $s --backend gpu
refuses 2 "backends must be one of .*did you mean 'cuda' or 'tensor'\?" 1 bench dirac --backends gpu
refuses 2 "precision must be one of .*got 'float'; did you mean 'single'\?" 1 $s --precision float

# Help by another word; a dash begins no file name.
for words in "help" "-h"; do
  on 1 $words | grep -q '^usage: minidirac COMMAND' || complain "$words"
done
for words in "help solve" "solve -h" "solve --help"; do
  on 1 $words | grep -q '^usage: minidirac solve LATTICE' || complain "$words"
done
on 1 help bench gemm | grep -q '^usage: minidirac bench gemm' || complain "help bench gemm"
on 1 measure --help | grep file:PATH && complain "measure --help names a source that measure refuses"
on 1 solve --help | grep -q file:PATH || complain "solve --help does not name all sources"
refuses 2 "'slove' is not known.*did you mean 'solve'\?" 1 help slove
refuses 2 "does not know the option '-z'" 1 solve -z --mass 0.1

# One is not many.
on 1 solve "$lattice" --mass 0.5 --threads 1 --source random:1 --rhs 1 >"$work/out" || complain "solve: exit $?"
on 1 eigen "$lattice" --modes 1 --tol 1e-2 --threads 1 >>"$work/out" || complain "eigen: exit $?"
on 1 measure --lattices "$lattice" --output "$work/one.h5" --masses 0.5 --threads 1 >>"$work/out" || complain "measure: exit $?"
on 1 bench dirac --dims 4x4x4x4 --backends cpu_simd --precisions single --repetitions 1 --threads 1 >>"$work/out" ||
  complain "bench dirac: exit $?"
on 1 bench suite --class XS --parts gemm,cg1 --threads 1 >>"$work/out" || complain "bench suite: exit $?"
grep -nE '(^|[^0-9.])1 (threads|ranks|sources|modes|bins|lattices|iterations|restarts|vectors|right-hand sides)' "$work/out" &&
  complain "one of a thing is many"
grep -qE 'residual.*, at most 1e-10$' "$work/out" || complain "no bound: $(grep residual "$work/out")"
grep -q 'expected 0 within' "$work/out" && complain "a bound is said as what is expected"

# Numbers are read whole.
for number in 0x10 0X1p-3 1e +0.1 '0.1 ' inf nan; do
  on 1 solve "$lattice" --mass "$number" >/dev/null 2>"$work/err"
  [ $? = 2 ] && grep -q "mass must be a finite decimal number, got '$number'" "$work/err" || complain "mass $number: $(cat "$work/err")"
done
refuses 2 "dims takes 1 to 32767 in each direction, got '4294967300x4x4x4'" 2 generate --dims 4294967300x4x4x4 --output "$work/x.h5"
refuses 2 'grid takes 1 to 1048576' 1 $s --grid 4294967297x1x1x1
refuses 2 'source must be point:x,y,z,t.*integers below 2\^31' 1 $s --source point:4294967296,0,0,0
refuses 2 'source must be point' 1 $s --source wall:1.5
refuses 2 'source must be point' 1 $s --source random:
refuses 2 'source must be point' 1 $s --source 'point: 1,0,0,0'
refuses 2 'rhs must lie in 1 to 128, got 4294967297' 1 bench dirac --rhs 4294967297
refuses 2 'counts must lie in 1 to' 1 bench dirac --kernel matvec --counts 0
refuses 2 '--action has no effect with --kernel matvec' 1 bench dirac --kernel matvec --counts 64 --action hisq
refuses 2 '--rhs has no effect with --kernel matvec' 1 bench dirac --kernel matvec --counts 64 --rhs 4
refuses 2 'repetitions must lie in 1 to 1000 with --kernel matvec, got 1001' 1 bench dirac --kernel matvec --counts 64 --repetitions 1001
refuses 2 '--counts has no effect without --kernel matvec' 1 bench dirac --counts 64
refuses 2 'sizes must lie in' 1 bench copy --sizes 1,0
many=$(printf 'cpu_simd:none:18,%.0s' {1..15})cpu_simd:none:18
refuses 2 'operators must be a list of at most 16' 1 bench solver --dims 4x4x4x4 --operators "$many,auto"
on 1 bench solver --dims 4x4x4x4 --operators "$many" --inner none --repetitions 1 --mass 1 --tol 1e-4 --quiet || complain "16 operators: exit $?"
refuses 2 'seed must lie in 0 to 9007199254740992, got -1' 1 generate --seed -1
refuses 2 "[-]-version stands alone, got 'x'; leave that out" 2 --version x
refuses 2 "[-]-help stands alone, got 'solve'" 1 --help solve
refuses 2 "bench copy does not know the option '--grid'" 2 bench copy --grid 1x1x1x2
for kind in copy transpose shift gemv; do
  refuses 2 "bench $kind does not know the option '--grid'" 1 bench $kind --grid 1x1x1x1
  on 1 bench $kind --help | grep -q -- --grid && complain "bench $kind --help lists --grid, which it refuses"
done
refuses 2 '--solvers with --modes takes 63 names at most, got 64' 1 bench solver --dims 4x4x4x4 --modes 2 --solvers "$(printf 'cg,%.0s' {1..63})cg"
refuses 2 'shifts must be a list of finite numbers' 1 $s --solver multishift --shifts 0.1,inf
refuses 2 'mass.2 . shift > 0, got -0.01 for mass 0.1; the square root is a mass, from 1e-06 to 100' 1 $s --solver multishift --shifts=-0.01,0
refuses 2 'got 1e.12 for mass 0.1; the square root is a mass' 1 $s --solver multishift --shifts 0,1e12
refuses 2 'mass must lie in 1e-06 to 100, got 0' 1 bench solver --dims 4x4x4x4 --mass 0.1,0
refuses 2 "shapes takes MxNxK .*got '4x4x18446744073709551617'" 1 bench gemm --shapes 4x4x18446744073709551617
printf '[solve]\n    lattice = %s\n\n\t mass = 0.5\n' "$lattice" >"$work/deck.ini"
on 1 solve --config "$work/deck.ini" --quiet || complain "a deck of indented lines: exit $?"
printf '; a deck\nlattice = %s\nmass = heavy\n' "$lattice" >"$work/deck.ini"
refuses 2 "deck .*deck.ini, line 3: mass must be a finite decimal number, got 'heavy'" 2 solve --config "$work/deck.ini"
printf 'shapes = 3x4\n' >"$work/gemm.ini"
refuses 2 'deck .*gemm.ini, line 1: shapes takes MxNxK' 1 bench gemm --config "$work/gemm.ini"
for key in kernels local-kernel; do
  printf 'shapes = 3x4x5\n%s = blas\n' $key >"$work/gemm.ini"
  refuses 2 "deck .*gemm.ini, line 2: $key: GEMM kernel must be one of .*got 'blas'" 2 bench gemm --config "$work/gemm.ini"
done
OMP_NUM_THREADS=5000 refuses 2 "OMP_NUM_THREADS must be an integer from 1 to 4096, got '5000'" 1 info "$lattice"
OMP_NUM_THREADS=two on 1 info "$lattice" >/dev/null 2>"$work/err"
[ $? = 2 ] || complain "OMP_NUM_THREADS=two is taken"
grep -q "error: OMP_NUM_THREADS must be an integer .*got 'two'" "$work/err" || complain "OMP_NUM_THREADS: $(cat "$work/err")"
OMP_NUM_THREADS=1, on 1 info "$lattice" >/dev/null 2>"$work/err"
[ $? = 2 ] && grep -q "error: OMP_NUM_THREADS must be an integer .*got '1,'" "$work/err" || complain "OMP_NUM_THREADS=1,: $(cat "$work/err")"
# Teams have no more threads than the limit says.
OMP_THREAD_LIMIT=1 refuses 3 'threads must be within OMP_THREAD_LIMIT, 1, got 2' 1 info "$lattice" --threads 2
OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=2 refuses 3 'threads must be within OMP_THREAD_LIMIT, 1, got 2' 1 info "$lattice"
(unset OMP_NUM_THREADS; OMP_THREAD_LIMIT=1 on 1 info "$lattice" --quiet --json "$work/i.json") || complain "a limit alone: exit $?"
[ "$(key threads "$work/i.json")" = 1 ] || complain "a limit alone: $(key threads "$work/i.json") threads"

# The lattice with or without its flag, everywhere.
for command in info "solve --mass 0.5" "eigen --modes 1" validate; do
  refuses 2 'needs --lattice LATTICE, with or without the flag' 1 $command
done
on 1 info --lattice "$lattice" --quiet || complain "info --lattice: exit $?"
on 1 solve "$lattice" --mass 0.5 --quiet || complain "solve LATTICE: exit $?"
refuses 2 '--lattice is given twice' 1 info "$lattice" --lattice "$lattice"

# What is missing, and what to do.
refuses 2 '--resume needs --checkpoint FILE, the state that an earlier solve wrote with' 1 $s --resume
refuses 2 'tensor_emu serves the packings single, diagonal, block8, stacked, got none; take one of them' 1 $s --backend tensor_emu --packing none
if on 1 bench gemv --dims 8x8 --repeat 1 | grep -q 'host only'; then
  refuses 3 '--space device: .*; or take --space host' 1 bench gemv --space device
  refuses 3 'bench dirac timed nothing: (backend cuda is not available|GPU code needs the NVIDIA driver)' 1 bench dirac --dims 4x4x4x4 --backends cuda
  refuses 3 'bench solver timed nothing: (backend cuda is not available|GPU code needs the NVIDIA driver)' 2 bench solver --dims 4x4x4x4 --operators cuda
fi
refuses 3 'needs at least 2, got 1; take 8 or 16$' 1 \
  bench dirac --dims 4x4x4x4 --backends tensor_emu --packings stacked --precisions double --rhs 1
refuses 3 'bench dirac timed nothing: backend cpu_ref does not serve precision half' 1 \
  bench dirac --dims 4x4x4x4 --backends cpu_ref --precisions half
on 1 generate --dims 4x4x4x4 --sweeps 2 --output "$work/g.h5" --json "$work/g.json" >"$work/out" || complain "two sweeps: exit $?"
grep -q 'an error needs two sweeps or more after --discard' "$work/out" || complain "two sweeps: $(cat "$work/out")"
grep -q 'inf' "$work/out" && complain "an infinite error is printed"
[ "$(key plaquette_error "$work/g.json")" = null ] || complain "two sweeps: $(key plaquette_error "$work/g.json")"

# GF/s is that of the time beside it.
on 1 bench gemm --shapes 96x80x112 --kernels cpu_tiled,naive --repeat 9 >"$work/out" || complain "bench gemm: exit $?"
awk '$1 == "kernel" { if ($7 != "median_s" || $9 != "GF/s") exit 1 }
     $1 == "cpu_tiled" || $1 == "naive" { n++; g = 2e-9 * $3 * $4 * $5 / $7; if ((g - $9)^2 > (1e-3 * g + 0.006)^2) exit 1 }
     END { if (n != 2) exit 1 }' "$work/out" || complain "GF/s is not of the time beside it: $(cat "$work/out")"
finish
