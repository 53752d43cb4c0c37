#!/usr/bin/env bash
# Checkpoints of solve on a GPU: the same bits in every inner precision, whether states are saved on
# the way, a solve is cut off and resumed, or nothing disturbs it. Skipped where there is no GPU.
. "$(dirname "$0")/common.sh"
cd "$work"
on 1 generate --dims 8x8x8x8 --start hot --seed 5 -o a.h5 --quiet || complain "generate: exit $?"
on 1 solve a.h5 --mass 0.5 --backend cuda --quiet 2>err
got=$?
[ $got = 3 ] && grep -qE 'not available|GPU code needs|no CUDA' err && exit 77
[ $got = 0 ] || complain "cuda: exit $got, $(cat err)"
on 1 eigen a.h5 --modes 4 --output modes.h5 --quiet || complain "eigen: exit $?"
numbers() { grep -E '"(iterations|relative_residual|residual.*|.*correlator|reliable_updates|inner_restarts|rhs_iterations|mode_projections)":' "$1"; }
# undisturbed ITERATIONS OPTIONS...: of $lattice, cut off there, a multiple of 13.
lattice=a.h5
undisturbed() {
  local cut=$1 with="solve $lattice --quiet ${*:2}"
  rm -f k.h5
  # shellcheck disable=SC2086
  {
    on 1 $with --json through.json || complain "$with: exit $?"
    on 1 $with --checkpoint k.h5 --checkpoint-every 13 --json saving.json || complain "$with, saving: exit $?"
    [ "$(numbers through.json)" = "$(numbers saving.json)" ] || complain "$with: saving changes bits"
    on 1 $with --checkpoint k.h5 --checkpoint-every 13 --max-iter "$cut" 2>err
    on 1 $with --checkpoint k.h5 --checkpoint-every 13 --resume --json resumed.json || complain "$with resumed: exit $?"
  }
  [ "$(numbers through.json)" = "$(numbers resumed.json)" ] ||
    complain "$with resumed: other bits: $(key iterations through.json) and $(key iterations resumed.json) iterations"
}
for backend in cuda 'tensor --packing stacked'; do
  for inner in none single half bf16 fixed 'half --deflate modes.h5' 'none --deflate modes.h5'; do
    case "$backend $inner" in tensor*single | tensor*fixed) continue ;; esac # its tiles do not multiply them
    undisturbed 78 --mass 0.1 --backend $backend --inner $inner
  done
done
# One right-hand side after the other, on the GPU and on the CPU.
for inner in none single half; do
  undisturbed 39 --action mobius --Ls 4 --mass 0.2 --backend auto --inner $inner
done
undisturbed 39 --mass 0.1 --backend cpu_simd --inner half
# Tiles take numbers in units of a site's scale, which a state must bring back; deflation that begins on the way.
undisturbed 39 --action mobius --Ls 12 --mass 0.2 --backend tensor --packing stacked --inner half
on 1 generate --quiet --dims 6x6x6x12 --beta 6.2 --sweeps 20 --overrelax 2 --seed 5 -o low.h5 || complain "a lattice with a low mode"
lattice=low.h5
for cut in 26 260; do
  undisturbed $cut --action mobius --Ls 8 --mass 0.001 --source random:1 --rhs 1 --backend tensor --packing stacked --inner half
done
finish
