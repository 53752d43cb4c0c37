#!/usr/bin/env bash
# tests/ctest.sh BUILD [ARGUMENTS OF CTEST]: builds the tests, runs ctest, and lists what was skipped,
# whole tests and parts of them ("[  SKIPPED ] NAME" in what they print). Fails also where no test is
# found, and where something was skipped that tests/may-skip.txt does not name.
set -uo pipefail
build=$1
shift
cmake --build "$build" || exit
allowed=$(dirname "$0")/may-skip.txt
gpu='^$' # tests that may skip because there is no GPU
nvidia-smi -L >/dev/null 2>&1 ||
  gpu=$(ctest --test-dir "$build" -N -L gpu | sed -n 's/^ *Test *#[0-9]*: //p' | sed 's/[.]/\\./g' | paste -sd'|')
shown=$(mktemp) log=$(mktemp) last=$build/Testing/Temporary
trap 'rm -f "$shown" "$log"' EXIT
ctest --test-dir "$build" --no-tests=error --output-on-failure "$@" | tee "$shown"
code=$?
cp "$last/LastTest.log" "$log"

# Whether LeakSanitizer broke down in every test that failed (clang 14, in two of 165 once, in programs with
# threads): it ends the program after its last test, so nothing is known of leaks. Such tests run once more.
broke_down() {
  awk 'NR == FNR { sub(/^[0-9]+:/, ""); failed[$0] = 1; count++; next }
       /^[0-9]+\/[0-9]+ Testing: / { test = $3 }
       /LeakSanitizer has encountered a fatal error/ && test in failed && !(test in seen) { seen[test] = 1; broken++ }
       /^\[  FAILED  \]/ && test in failed { broken = -count }
       END { exit !(count > 0 && count == broken) }' "$last/LastTestsFailed.log" "$log"
}
if [ $code != 0 ] && [ -s "$last/LastTestsFailed.log" ] && broke_down; then
  echo "LeakSanitizer broke down: once more"
  ctest --test-dir "$build" --rerun-failed --output-on-failure | tee -a "$shown"
  code=$?
  cat "$last/LastTest.log" >>"$log"
fi

# TEST and TEST:PART of what this run skipped: the parts are in its log alone.
skipped() {
  sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*Skipped.*/\1/p' "$shown"
  awk '/^[0-9]+\/[0-9]+ Testing: / { test = $3 }
       /^\[  SKIPPED \] [^0-9]/ { sub(/^\[  SKIPPED \] /, ""); print test ":" $0 }' "$log" |
    sort -u
}
while read -r name; do
  why=
  if [[ $name =~ ^($gpu)(:.*)?$ ]]; then
    why='no GPU here'
  else
    while read -r pattern reason; do
      [[ $pattern != '' && $pattern != \#* && $name =~ ^($pattern)$ ]] && why=$reason && break
    done <"$allowed"
  fi
  if [ -z "$why" ]; then
    echo "skipped, and may not: $name (see $allowed)"
    code=1
  else
    echo "skipped: $name ($why)"
  fi
done < <(skipped)
exit $code
