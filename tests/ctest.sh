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
shown=$(mktemp)
trap 'rm -f "$shown"' EXIT
ctest --test-dir "$build" --no-tests=error --output-on-failure "$@" | tee "$shown"
code=$?

# TEST and TEST:PART of what this run skipped: the parts are in its log alone.
skipped() {
  sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*Skipped.*/\1/p' "$shown"
  awk '/^[0-9]+\/[0-9]+ Testing: / { test = $3 }
       /^\[  SKIPPED \] [^0-9]/ { sub(/^\[  SKIPPED \] /, ""); print test ":" $0 }' "$build/Testing/Temporary/LastTest.log" |
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
