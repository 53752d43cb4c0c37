#!/usr/bin/env bash
# The keys that every subcommand's JSON report promises (README), and the seconds of the whole run.
. "$(dirname "$0")/common.sh"
lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
every='schema_version machine command version commit ranks threads grid seconds'

# has KEYS COMMAND...: runs the command and looks for the keys, those of rows included.
has() {
  local keys=$1
  shift
  on 1 "$@" --quiet --json "$work/r.json" || complain "$*: exit $?"
  for k in $every $keys; do
    grep -q "\"$k\":" "$work/r.json" || complain "'$1 $2' reports no $k"
  done
}

has 'format dims precision plaquette plaquette_ss plaquette_st link_trace unitarity_deviation checksum' info "$lattice"
solve='lattice mass backend packing precision inner iterations converged relative_residual residual_history gflops'
has "$solve pion_correlator" solve --lattice "$lattice" --mass 0.2
awk -v run="$(key seconds "$work/r.json")" -v solver="$(key solver_seconds "$work/r.json")" \
  'BEGIN { exit !(solver > 0 && run >= solver) }' || complain "seconds are not those of the run"
has "$solve" solve --lattice "$lattice" --mass 0.2 --solver block --source random:1 --rhs 2
has "$solve shifts" solve --lattice "$lattice" --mass 0.2 --solver multishift --shifts 0.1,0.3
history=$(key residual_history "$work/r.json" | tr -cd , | wc -c)
[ "$history" = "$(key iterations "$work/r.json")" ] || complain "multishift: $history commas in the history"
has 'rows backend packing precision operation rel_l2_error max_rel_error bound pass iterations reachable_residual' \
  validate --lattice "$lattice" --backend cpu_simd --precision single
has 'copy_gbytes_per_s rows backend packing precision reconstruct rhs dims seconds_median seconds_min seconds_max
  repetitions gflops gbytes_per_s roofline_fraction error' bench dirac --dims 4x4x4x4 --backends cpu_simd --repetitions 1
has 'rows kernel count seconds_kernel seconds_launch ns_kernel ns_launch error' \
  bench dirac --kernel matvec --counts 64 --repetitions 3
awk -v s="$(key seconds_kernel "$work/r.json")" 'BEGIN { exit !(s + 0 > 0) }' || complain "matvec: a kernel took no time"
awk -v e="$(key error "$work/r.json")" 'BEGIN { exit !(e > 0 && e < 1e-5) }' || complain "matvec: error $(key error "$work/r.json") from products in double"
has 'rows kernel precision m n k seconds_mean seconds_std gflops_kernel gflops_total speedup relative_error vs_reference' \
  bench gemm --shapes 9x10x11 --kernels naive,cpu_tiled --repeat 1
finish
