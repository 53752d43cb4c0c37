#!/usr/bin/env bash
# tests/fuzz/run.sh [SECONDS [CMAKE OPTIONS]]: builds the fuzz targets in build-fuzz with clang and
# runs all of them side by side. Each first does a fixed number of executions from the seeds, however
# long they take, then others until SECONDS (default 60) have passed.
# Prints executions and finds of each. Exit code 1: there is a find, which stays in build-fuzz/finds
# and is printed, or a target did not get to its number of executions. MINIDIRAC_FUZZ_TARGETS="lattice
# hdf5" runs these alone, MINIDIRAC_FUZZ_BUILD=FOLDER builds there. More of one target:
# build-fuzz/tests/fuzz/fuzz_lattice -help=1.
set -euo pipefail
case ${1-} in
--help | -h)
  sed -n '2,9s/^# //p' "$0"
  exit 0
  ;;
esac
cd "$(dirname "$0")/../.."
seconds=${1:-60}
shift $(($# > 0))
declare -A floors=([lattice]=3000 [objects]=2500 [chunks]=20000 [hdf5]=150 [options]=10000)
floor_s=900 # by then they must be done, however busy the machine
read -ra targets <<<"${MINIDIRAC_FUZZ_TARGETS:-lattice objects chunks hdf5 options}"
build=${MINIDIRAC_FUZZ_BUILD:-$PWD/build-fuzz}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || {
  echo "SECONDS must be a whole number above 0, got '$seconds'" >&2
  exit 2
}
for target in "${targets[@]}"; do
  [ -n "${floors[$target]-}" ] || {
    echo "MINIDIRAC_FUZZ_TARGETS must be some of ${!floors[*]}, got '$target'" >&2
    exit 2
  }
done
mkdir -p "$build"
cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG" \
  -DMINIDIRAC_CUDA=OFF -DMINIDIRAC_FUZZ=ON "$@" >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 3; }
cmake --build "$build" --target write_seeds "${targets[@]/#/fuzz_}" >"$build/build.log" 2>&1 ||
  { tail -30 "$build/build.log"; exit 3; }

finds=$build/finds
mkdir -p "$finds"
# Reports of a child process that reads a file go to files of their own.
# Leaks are left to the tests: the leak checker stops all threads after every input, and its own tracer
# was once seen to crash in that.
export ASAN_OPTIONS=protect_shadow_gap=0:allocator_may_return_null=1:detect_leaks=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
export OMPI_MCA_opal_signal= # the sanitizer reports signals, not MPI
for target in "${targets[@]}"; do
  rm -rf "$build/seeds/$target" && mkdir -p "$build/seeds/$target"
  [ ! -d "tests/fuzz/seeds/$target" ] || cp "tests/fuzz/seeds/$target"/* "$build/seeds/$target/"
done
if [[ " ${targets[*]} " = *" lattice "* ]]; then
  "$build/tests/fuzz/write_seeds" "$build/seeds/lattice"
  rm "$build/seeds/lattice"/*.h5 # of other targets
fi

# Reports of child processes whose first frame is our code; those of the HDF5 library are why it has
# a process of its own.
ours_in() {
  local report
  for report in "$1".*; do
    [ -e "$report" ] || continue
    if grep -q 'runtime error' "$report" ||
      grep -m1 -E '^ +#[0-9]+ .*(libhdf5|/(io|src|lattice|tests)/.*\.[ch]:[0-9])' "$report" |
      grep -qv libhdf5; then
      echo "$report"
    fi
  done
}

trap 'rm -f /dev/shm/minidirac_fuzz_*' EXIT # what a find leaves
# show LOG FILES: what is needed to look into a find where the folders of the run are gone.
show() {
  local file
  tail -n 40 "$1"
  shift
  for file in "$@"; do
    printf '%s, base64 of its first 3000 bytes:\n' "${file##*/}"
    head -c 3000 "$file" | base64
  done
}

# stalled TARGET INPUT: whether an input that was given up for its time ends within a minute of
# processor time. On a machine that stands still, or has much else to do, any input looks endless.
stalled() {
  (ulimit -t 60 && "$build/tests/fuzz/fuzz_$1" -timeout=900 -close_fd_mask=3 "$2") >/dev/null 2>&1
}

# execute TARGET LIMITS... FOLDERS...: one run; adds to the caller's `runs`; 1 when there is a find.
execute() {
  local target=$1 code=0 log=$build/$1.log reports=$build/reports/$1 ours done found
  shift
  rm -rf "$reports" && mkdir -p "$reports"
  ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$reports/asan "$build/tests/fuzz/fuzz_$target" -timeout=60 \
    -rss_limit_mb=4096 -malloc_limit_mb=2048 -max_len=32768 -len_control=0 -close_fd_mask=3 \
    -handle_segv=0 -handle_bus=0 -handle_fpe=0 -handle_ill=0 \
    -print_final_stats=1 -artifact_prefix="$finds/$target-" "$@" >"$log" 2>&1 || code=$?
  done=$(sed -n 's/^stat::number_of_executed_units: //p' "$log")
  runs=$((runs + ${done:-0}))
  ended=$((ended + $(find "$reports" -type f | wc -l)))
  ours=$(ours_in "$reports/asan")
  found=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1) # before: of children
  if [ $code = 70 ] && [ -n "$found" ] && stalled "$target" "$found"; then
    echo "fuzz $target: an input took over 60 s in this run, and less of a processor when run again"
    code=0
  fi
  [ $code != 0 ] || [ -n "$ours" ] || return 0
  echo "fuzz $target: a find after $runs executions (exit code $code), see $log $ours"
  # shellcheck disable=SC2086 # lists, of which each may be empty
  show "$log" $found $ours $([ $code = 0 ] || find "$reports" -type f | head -n 1)
  return 1
}

# fuzz TARGET: both parts, and one line of what came out.
fuzz() {
  local target=$1 start=$SECONDS left runs=0 ended=0 floor=${floors[$1]} first
  mkdir -p "$build/corpus/$target"
  rm -rf "$build/first/$target" && mkdir -p "$build/first/$target"
  execute "$target" -seed=1 -runs="$floor" -max_total_time=$floor_s "$build/first/$target" "$build/seeds/$target" ||
    return 1
  first=$runs
  left=$((seconds - SECONDS + start))
  if [ $left -gt 0 ]; then
    execute "$target" -max_total_time=$left "$build/corpus/$target" "$build/first/$target" "$build/seeds/$target" ||
      return 1
  fi
  if [ "$first" -lt "$floor" ]; then
    echo "fuzz $target: $first executions in $floor_s s, below its floor of $floor"
    return 1
  fi
  echo "fuzz $target: $runs executions, no find ($ended reports on the HDF5 library in its child)"
}
bad=0 under_way=()
for target in "${targets[@]}"; do
  fuzz "$target" &
  under_way+=($!)
done
for one in "${under_way[@]}"; do wait "$one" || bad=1; done
exit $bad
