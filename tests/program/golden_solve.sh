#!/usr/bin/env bash
# Known numbers of a random source, their mean and error, and which backend `auto` is; known
# eigenvalues.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/golden_correlators.sh"
on 1 solve --lattice "$own_lattice" --mass 0.1 --source random:3 --rhs 4 --tol 1e-12 --quiet --json "$work/r.json" ||
  complain "exit $?"
estimates=$(key chiral_condensate_estimates "$work/r.json")
close "$estimates" '[0.567558017751834, 0.52974151321474727, 0.60892396222752765, 0.56836964221986541]' 1e-9 ||
  complain "estimates are $estimates"
mean_and_error=$(awk -v list="$estimates" 'BEGIN {
  gsub(/[\[\]]/, "", list); n = split(list, x, ",")
  for (i = 1; i <= n; i++) mean += x[i] / n
  for (i = 1; i <= n; i++) sum += (x[i] - mean)^2
  printf "%.15g, %.15g", mean, sqrt(sum / n / (n - 1)) }')
close "$(key chiral_condensate "$work/r.json"), $(key chiral_condensate_error "$work/r.json")" "$mean_and_error" 1e-12 ||
  complain "mean and error must be $mean_and_error"
[[ $(key backend "$work/r.json") =~ ^\"(cpu_simd|cuda)\"$ ]] || complain "auto takes $(key backend "$work/r.json")"
OMP_NUM_THREADS=1 on 1 eigen "$own_lattice" --modes 8 --tol 1e-8 --quiet --json "$work/e.json" || complain "eigen: exit $?"
close "$(key eigenvalues "$work/e.json")" "$own_eigenvalues" 1e-10 || complain "eigenvalues are $(key eigenvalues "$work/e.json")"
finish
