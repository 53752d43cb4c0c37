#!/usr/bin/env bash
# Dense products of every kernel in single and double, squares from 250 to 10000 and thin ones with
# k = 32, 64, 128, 156 between 8192 x 8192 matrices, as one CSV; then, where matplotlib is, one picture.
# usage: sweep_gemm.sh MINIDIRAC OUT
# OUT: folder; receives dense-sweep.csv, dense-sweep.png and the JSON report of each part. Takes about
# two minutes on an H200. Kernels that would need longer than the rest together are given fewer sizes:
# those of the CPU end at 2000 (naive at 1000); above 4000 k0 has two, k1 and k2 have three.
# In the environment: HOST_ONLY=1 leaves out the sizes of GPUs; HOST_MEMORY is that of bench gemm
# --host-memory [pinned, with HOST_ONLY pageable].
if [ "${1:-}" = --help ] || [ $# -ne 2 ]; then
  sed -n '2,9s/^# //p' "$0"
  [ "${1:-}" = --help ] && exit 0 || exit 2
fi
set -euo pipefail
minidirac=$1 out=$2 here=$(dirname "$0")
mkdir -p "$out"
HOST_MEMORY=${HOST_MEMORY:-${HOST_ONLY:+pageable}}
parts=()
# part NAME ARGUMENTS...: one run of bench gemm; a kernel that this build has not ends it.
part() {
  local name=dense-$1
  shift
  echo "$name ($SECONDS s)"
  "$minidirac" bench gemm "$@" --repeat "${REPEAT:-3}" --baseline off --check 256 --host-memory "${HOST_MEMORY:-pinned}" \
    --quiet --csv "$out/$name.csv" --json "$out/$name.json"
  parts+=("$out/$name.csv")
}
small=${SMALL:-250:2000:250} middle=${MIDDLE:-2250:4000:250} large=${LARGE:-4500:10000:500}
gpu() { # PRECISION KERNELS: the fast ones, cublas among them
  part "$1-middle" --precision "$1" --kernels "k0,k1,k2,$2" --square "$middle"
  part "$1-large" --precision "$1" --kernels "$2" --square "$large"
  part "$1-slow" --precision "$1" --kernels k1,k2 --square "${SLOW:-5000:10000:2500}"
  part "$1-slowest" --precision "$1" --kernels k0 --square "${SLOWEST:-5000:10000:5000}"
  part "$1-thin" --precision "$1" --kernels "k0,k1,k2,$2" --rect "${THIN:-8192x8192}" --k 32,64,128,156
}
for precision in single double; do
  part $precision-small --precision $precision --kernels all --square "$small"
done
if [ -z "${HOST_ONLY:-}" ]; then
  gpu single k3,k4,k5,k6,k7,cublas
  gpu double dmma,cublas
fi
{
  head -n 1 "${parts[0]}"
  for csv in "${parts[@]}"; do
    [ "$(head -n 1 "$csv")" = "$(head -n 1 "${parts[0]}")" ] || { echo "$csv has other columns" >&2; exit 1; }
    tail -n +2 "$csv"
  done
} >"$out/dense-sweep.csv"
rm "${parts[@]}"
echo "$out/dense-sweep.csv: $(($(wc -l <"$out/dense-sweep.csv") - 1)) rows in $SECONDS s"
python3 -c 'import matplotlib' 2>/dev/null || exit 0
python3 "$here/plot_gemm_sweep.py" "$out/dense-sweep.csv" "$out/dense-sweep.png" --report "$out/dense-single-small.json"
