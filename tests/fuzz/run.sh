#!/usr/bin/env bash
# tests/fuzz/run.sh [SECONDS [CMAKE OPTIONS]]: builds the fuzz targets in build-fuzz with clang and
# runs all of them side by side, for SECONDS (default 60) in total, from the seeds. Prints
# executions and finds of each; exit code 1 when there is a find, which stays in build-fuzz/finds and
# is printed. A first run of one target: build-fuzz/tests/fuzz/fuzz_lattice -help=1.
set -euo pipefail
case ${1-} in
--help | -h)
  sed -n '2,5s/^# //p' "$0"
  exit 0
  ;;
esac
cd "$(dirname "$0")/../.."
seconds=${1:-60}
shift $(($# > 0))
targets=(lattice hdf5 options)
[[ $seconds =~ ^[1-9][0-9]*$ ]] || {
  echo "SECONDS must be a whole number above 0, got '$seconds'" >&2
  exit 2
}
cmake -S . -B build-fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG" \
  -DMINIDIRAC_CUDA=OFF -DMINIDIRAC_FUZZ=ON "$@" >build-fuzz.log 2>&1 || { cat build-fuzz.log; exit 3; }
mv build-fuzz.log build-fuzz/configure.log
cmake --build build-fuzz --target write_seeds "${targets[@]/#/fuzz_}" >build-fuzz/build.log 2>&1 ||
  { tail -30 build-fuzz/build.log; exit 3; }

finds=$PWD/build-fuzz/finds
mkdir -p build-fuzz/seeds/lattice "$finds"
# Reports of a child process that reads a file go to files of their own.
# Leaks are left to the tests: the leak checker stops all threads after every input, and its own tracer
# was once seen to crash in that.
export ASAN_OPTIONS=protect_shadow_gap=0:allocator_may_return_null=1:detect_leaks=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
export OMPI_MCA_opal_signal= # the sanitizer reports signals, not MPI
build-fuzz/tests/fuzz/write_seeds build-fuzz/seeds/lattice
cp tests/fuzz/seeds/lattice/* build-fuzz/seeds/lattice/

# Reports of child processes whose first frame is our code; those of the HDF5 library are why it has
# a process of its own.
ours_in() {
  local report
  for report in "$1".*; do
    [ -e "$report" ] || continue
    if grep -q 'runtime error' "$report" ||
      grep -m1 -E '^ +#[0-9]+ .*(libhdf5|/(io|src/base|lattice|tests)/.*\.[ch]:[0-9])' "$report" |
      grep -qv libhdf5; then
      echo "$report"
    fi
  done
}

trap 'rm -f /dev/shm/minidirac_fuzz_*' EXIT # what a find leaves
# show TARGET FILES: what is needed to look into a find where the folders of the run are gone.
show() {
  local target=$1 file
  shift
  tail -n 40 "build-fuzz/$target.log"
  for file in "$@"; do
    printf '%s, base64 of its first 3000 bytes:\n' "${file##*/}"
    head -c 3000 "$file" | base64
  done
}

# stalled TARGET INPUT: whether an input that was given up for its time ends when it is run alone. A
# machine that stands still, as one does that is moved, makes every input under way look endless.
stalled() {
  "build-fuzz/tests/fuzz/fuzz_$1" -timeout=30 -close_fd_mask=3 "$2" >/dev/null 2>&1
}

# fuzz TARGET: its share of the time, and one line of what came out; 1 when there is a find.
fuzz() {
  local target=$1 code corpus reports runs ours ended found
  corpus=build-fuzz/corpus/$target
  mkdir -p "$corpus" "build-fuzz/seeds/$target"
  [ -d "tests/fuzz/seeds/$target" ] && cp "tests/fuzz/seeds/$target"/* "build-fuzz/seeds/$target/"
  code=0
  reports=build-fuzz/reports/$target
  rm -rf "$reports" && mkdir -p "$reports"
  ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$PWD/$reports/asan build-fuzz/tests/fuzz/fuzz_$target -max_total_time=$((seconds / ${#targets[@]} + 1)) -timeout=30 \
    -rss_limit_mb=4096 -malloc_limit_mb=2048 -max_len=32768 -len_control=0 -close_fd_mask=3 \
    -handle_segv=0 -handle_bus=0 -handle_fpe=0 -handle_ill=0 \
    -print_final_stats=1 -artifact_prefix="$finds/$target-" \
    "$corpus" "build-fuzz/seeds/$target" >"build-fuzz/$target.log" 2>&1 || code=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: //p' "build-fuzz/$target.log")
  ours=$(ours_in "$reports/asan")
  ended=$(find "$reports" -type f | wc -l)
  found=$(sed -n 's/.*Test unit written to //p' "build-fuzz/$target.log" | tail -n 1) # before: of children
  if [ $code = 70 ] && [ -n "$found" ] && stalled "$target" "$found"; then
    echo "fuzz $target: an input took over 30 s in this run, and less when run alone"
    code=0
  fi
  if [ $code = 0 ] && [ -z "$ours" ]; then
    echo "fuzz $target: ${runs:-no} executions, no find ($ended reports on the HDF5 library in its child)"
  else
    echo "fuzz $target: ${runs:-no} executions, a find (exit code $code), see build-fuzz/$target.log $ours"
    # shellcheck disable=SC2086 # lists, of which the first may be empty
    show "$target" $found $ours
    return 1
  fi
}
bad=0 under_way=()
for target in "${targets[@]}"; do
  fuzz "$target" &
  under_way+=($!)
done
for one in "${under_way[@]}"; do wait "$one" || bad=1; done
exit $bad
