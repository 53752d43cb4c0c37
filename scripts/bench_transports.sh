#!/usr/bin/env bash
# Halo transports of device fields on this machine: the tests with several ranks, then the hop over
# each transport beside one GPU. usage: bench_transports.sh BUILD [RANKS] [OUT]
# BUILD: build folder; RANKS: ranks of the timed runs [number of GPUs]; OUT: folder of the CSV files [.]
if [ "${1:-}" = --help ] || [ $# -lt 1 ]; then
  sed -n '2,4s/^# //p' "$0"
  [ "${1:-}" = --help ] && exit 0 || exit 2
fi
set -u
build=$1
ranks=${2:-$(nvidia-smi -L | wc -l)}
out=${3:-.}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-4} OMPI_MCA_hwloc_base_binding_policy=none
failed=0
for n in 1 2 4; do
  mpirun -n $n "$build/tests/cuda/test_cuda_transport" || failed=1
done
hop() { # dims ranks transport
  mpirun -n "$2" "$build/src/minidirac" bench dirac --dims "$1" --backends cuda,tensor --packings none,stacked \
    --precisions double,half,bf16 --reconstructs 18 --rhs 1,16 --transport "$3" --csv "$out/transport-$1-$2-$3.csv" || failed=1
}
for dims in 48x48x48x64 32x32x32x32; do
  hop $dims 1 auto
  for transport in peer nccl cuda_aware staged; do hop $dims "$ranks" $transport; done
done
# Weak scaling in t, and what the checks cost.
hop 48x48x48x$((64 * ranks)) "$ranks" peer
mpirun -n "$ranks" "$build/src/minidirac" bench dirac --dims 32x32x32x32 --backends cuda --packings none --precisions half \
  --reconstructs 18 --rhs 1,16 --transport peer --check-halo || failed=1
exit $failed
