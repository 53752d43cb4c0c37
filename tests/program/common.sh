# Sourced by the program tests: $1 is minidirac, $2 the source directory.
set -u
minidirac=$1
source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
# Ranks of one host: Open MPI then need not look for networks, which is most of a short run's time.
export OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1

complain() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# left_out NAME: says that a part of the test is skipped, as programs of cmocka do; tests/ctest.sh
# holds such names to tests/may-skip.txt.
left_out() { echo "[  SKIPPED ] $*"; }

# on RANKS ARGUMENTS...: runs the program on that many ranks. One without mpirun needs no folder of
# Open MPI, which all of a test would share: those that run side by side remove each other's.
on() {
  local ranks=$1
  shift
  if [ "$ranks" = 1 ]; then
    OMPI_MCA_orte_create_session_dirs=0 timeout 120 "$minidirac" "$@"
  else
    timeout 120 mpirun -n "$ranks" "$minidirac" "$@"
  fi
}

# refuses CODE PATTERN RANKS ARGUMENTS...: exit code, exactly one error line that matches.
refuses() {
  local code=$1 pattern=$2 ranks=$3
  shift 3
  on "$ranks" "$@" >"$work/out" 2>"$work/err"
  local got=$?
  [ $got = "$code" ] || complain "'$*' on $ranks ranks: exit $got, expected $code: $(head -5 "$work/err")"
  local lines
  lines=$(grep -c '^minidirac: error: ' "$work/err")
  [ "$lines" = 1 ] || complain "'$*' on $ranks ranks: $lines error lines instead of one"
  [ "$ranks" != 1 ] || [ "$(wc -l <"$work/err")" = 1 ] || complain "'$*': more than one line on stderr"
  grep -qE -- "$pattern" "$work/err" || complain "'$*' on $ranks ranks: no '$pattern' in: $(grep '^minidirac' "$work/err")"
}

# key NAME FILE: the value of a key of a JSON report, as printed.
key() { sed -n "s/^\t*\"$1\":\t*\(.*[^,]\),*\$/\1/p" "$2" | head -1; }

# python_with MODULE...: python3 has these modules from now on, as that of the PATH or that of the system
# does; false where neither has.
python_with() {
  local python modules
  modules="import $(IFS=,; echo "$*")"
  for python in "$(command -v python3)" /usr/bin/python3; do
    "$python" -c "$modules" 2>/dev/null || continue
    [ "$python" = "$work/python/python3" ] && return 0 # found before: it would call itself
    mkdir -p "$work/python"
    printf '#!/bin/sh\nexec %s "$@"\n' "$python" >"$work/python/python3"
    chmod +x "$work/python/python3"
    PATH=$work/python:$PATH
    return 0
  done
  return 1
}

# close A B TOLERANCE: two lists of numbers [a, b, ...] agree to a relative tolerance.
close() {
  awk -v a="$1" -v b="$2" -v tol="$3" 'BEGIN {
    gsub(/[\[\]]/, "", a); gsub(/[\[\]]/, "", b)
    n = split(a, x, ","); m = split(b, y, ",")
    if (n != m || n == 0) exit 1
    for (i = 1; i <= n; i++) {
      d = x[i] - y[i]; if (d < 0) d = -d
      s = y[i] < 0 ? -y[i] : y[i]
      if (!(d <= tol * s)) exit 1
    }
  }'
}

finish() {
  if [ $failures -gt 0 ]; then
    echo "$failures failures"
    exit 1
  fi
  exit 0
}
