#!/usr/bin/env bash
# minidirac generate: the same file from every rank and thread count, and what it refuses.
set -u
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0

# expect STATUS 'PATTERN' ARGUMENTS...: exit code, and the pattern in what it prints.
expect() {
  local status=$1 pattern=$2 text code
  shift 2
  text=$("$program" generate "$@" 2>&1)
  code=$?
  if [ "$code" -ne "$status" ] || ! grep -qe "$pattern" <<<"$text"; then
    printf 'generate %s: exit code %s (expected %s), printed:\n%s\n' "$*" "$code" "$status" "$text"
    failures=$((failures + 1))
  fi
}

# The bytes of a file without the date in its metadata.
undated() { LC_ALL=C sed 's|<date>[^<]*</date>||' "$1"; }

small=(--dims 4x4x4x8 --beta 5.7 --sweeps 2 --seed 3)
expect 0 'plaquette' "${small[@]}" -o one.lime --threads 1
expect 0 '' "${small[@]}" --output=two.lime --threads 2 --quiet --json two.json
for ranks in 2 4 8; do
  mpirun -n $ranks "$program" generate "${small[@]}" -o $ranks.lime --quiet || failures=$((failures + 1))
done
for file in two.lime 2.lime 4.lime 8.lime; do
  cmp <(undated one.lime) <(undated $file) || failures=$((failures + 1))
done
grep -q '"plaquette_history":.*,' two.json || { echo 'no history in the report'; failures=$((failures + 1)); }
expect 0 'plaquette' "${small[@]}" -o other.lime --overrelax=1
cmp -s <(undated one.lime) <(undated other.lime) && { echo 'two chains made the same links'; failures=$((failures + 1)); }

expect 0 '4x4x4x8' --from one.lime --sweeps 1 --seed 5 -o further.h5
# A report is of the links that the file has.
expect 0 '' --dims 4x4x4x4 --beta 5.7 --sweeps 3 --seed 4 -o sp.h5 --precision single --quiet --json sp.json
"$program" info sp.h5 --quiet --json spi.json || { echo 'info of single precision fails'; failures=$((failures + 1)); }
for key in plaquette polyakov_loop; do
  grep -q "\"$key\"" sp.json && cmp <(grep "\"$key\"" sp.json) <(grep "\"$key\"" spi.json) ||
    { echo "$key is not that of the file"; failures=$((failures + 1)); }
done
expect 2 'must be those of one.lime, 4x4x4x8' --from one.lime --dims 4x4x4x4 --sweeps 1 -o x.h5
expect 2 'no_such_file' --from no_such_file --sweeps 1 -o x.h5
expect 2 'even' --dims 4x4x5x8 -o x.h5
expect 2 'even' --dims 4x4x1x8 -o x.h5
expect 2 'dims' --dims 4x4x4 -o x.h5
expect 2 'dims' -o x.h5
expect 2 'output' --dims 4x4x4x4
expect 2 'beta' --dims 4x4x4x4 --beta -1 -o x.h5
expect 2 'beta' --dims 4x4x4x4 --beta nan -o x.h5
expect 2 'sweeps' --dims 4x4x4x4 --sweeps 0 -o x.h5
expect 2 'discard' --dims 4x4x4x4 --sweeps 4 --discard 4 -o x.h5
expect 2 'start' --dims 4x4x4x4 --start lukewarm -o x.h5
expect 2 'checkpoint needs a format that holds links in double' --dims 4x4x4x4 --sweeps 2 -o x.h5 --checkpoint k.milc
expect 2 'format' --dims 4x4x4x4 --start cold -o x.unknown
expect 2 'precision single' --dims 4x4x4x4 --start cold --format milc --precision double -o x.milc
expect 2 'given twice' --dims 4x4x4x4 -o x.h5 --output y.h5
expect 2 'needs a value' --dims 4x4x4x4 -o
expect 2 'directory' --dims 4x4x4x4 --start cold --format ildg -o .
expect 3 'cannot be written' --dims 4x4x4x4 --sweeps 1000000 -o no_such_folder/x.h5
expect 0 'no effect' --dims 4x4x4x4 --start cold --beta 5 -o cold.h5
expect 0 'seed has no effect with --start cold' --dims 4x4x4x4 --start cold --seed 5 -o cold5.h5
expect 0 'checkpoint has no effect with --start cold' --dims 4x4x4x4 --start cold --checkpoint cold5.h5 -o cold6.h5
expect 0 'single precision' --dims 4x4x4x4 --start hot --format milc -o hot.milc
[ ! -e x.h5 ] || { echo 'a refused run wrote a file'; failures=$((failures + 1)); }
text=$(mpirun -n 3 "$program" generate "${small[@]}" -o x.h5 2>&1)
code=$?
[ $code -eq 2 ] && grep -q 'grid' <<<"$text" || { echo "3 ranks: exit code $code: $text"; failures=$((failures + 1)); }

exit $((failures > 0))
