#!/usr/bin/env bash
# scripts/compare.py on made-up reports: a slower row is found, noise is not one, missing rows are
# named, bad input is one line.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || exit 77
cd "$work" || exit 1

# report COMMAND KEYS ROW...: a row is KEY VALUE pairs of JSON without blanks.
report() {
  local text="" row
  for row in "${@:3}"; do text+=${text:+, }{$row}; done
  echo "{\"schema_version\": 1, \"command\": \"$1\", $2 \"rows\": [$text]}"
}
# dirac BACKEND MIN MEDIAN MAX
dirac() { echo "\"backend\": \"$1\", \"rhs\": 1, \"dims\": [4, 4, 4, 8], \"seconds_min\": $2, \"seconds_median\": $3, \"seconds_max\": $4"; }
compare() { "$source_dir/scripts/compare.py" "$@" >out 2>err; }
# gives CODE ARGUMENTS...
gives() {
  compare "${@:2}"
  local got=$?
  [ $got = "$1" ] || complain "compare.py ${*:2}: exit $got instead of $1: $(tail -3 out err)"
}
says() { grep -qE -- "$1" out || complain "no '$1' in: $(cat out)"; }

report "bench dirac" "" "$(dirac a 0.99 1 1.01)" "$(dirac b 1.6 2 2.4)" "$(dirac c 1 1 1)" >old
cp old same
gives 0 old same
says '^bench dirac: rhs=1 dims=4x4x4x8$'
says '^0 of 3 rows slower'
report "bench dirac" "" "$(dirac a 1.19 1.2 1.21)" "$(dirac b 2.0 2.4 2.8)" "$(dirac d 1 1 1)" >new
gives 1 old new
says '^backend=a +1 +1\.2 +1\.200 +1\.3% +slower$'
says '^backend=b +2 +2\.4 +1\.200 +26\.0% +slower\?$'
says '^only in OLD: backend=c$'
says '^only in NEW: backend=d$'
says '^1 of 2 rows slower by more than 5 %'
gives 0 old new --threshold 25
gives 0 new old
says '^backend=a .* faster$'

# What of a product is timed are kernels, whose noise has names of its own; a solve that broke down has no row.
matvec() { echo "\"backend\": \"a\", \"count\": 64, \"seconds_kernel\": $2, \"seconds_kernel_min\": $1, \"seconds_kernel_max\": $3"; }
report "bench dirac" "" "$(matvec 0.8 1 1.2)" >old.mv
report "bench dirac" "" "$(matvec 0.9 1.1 1.3)" >new.mv
gives 0 old.mv new.mv
says 'slower\?$'
solved() { echo "\"mass\": 1, \"solver\": \"$1\", \"converged\": $2, \"speedup\": $3, \"seconds_median\": $4"; }
report "bench solver" '"skipped": [],' "$(solved cg true 1 1)" >old.bd
report "bench solver" '"skipped": [{"solver": "gcr", "failed": true}],' "$(solved cg true 1 1)" >new.bd
gives 1 old.bd new.bd
says '^failed in NEW: a solve that broke down$'
gives 0 new.bd new.bd
report "bench solver" '"skipped": [{"solver": "fcg", "failed": true}],' "$(solved cg true 1 1)" >other.bd
gives 1 new.bd other.bd # as many, of which one is mended
report "bench solver" '"fat_plaquette": 0.6,' "$(solved cg true 1 1)" >thin.fat
report "bench solver" '"fat_plaquette": 1.6,' "$(solved cg true 1 1)" >other.fat
gives 2 thin.fat other.fat
# Nor is a speed-up over a row that missed its tolerance.
report "bench solver" "" "$(solved fcg false null 9)" "$(solved cg true 1 1)" >old.miss
report "bench solver" "" "$(solved fcg true 1 2)" "$(solved cg true 2 1)" >new.miss
gives 0 old.miss new.miss --ratios

# Other slices are other work, as other links are.
report "bench dirac" '"plaquette": 0.5,' "$(dirac a 1 1 1), \"Ls\": 4" >slices4
report "bench dirac" '"plaquette": 0.5,' "$(dirac a 1 1 1), \"Ls\": 6" >slices6
report "bench dirac" '"plaquette": 0.6,' "$(dirac a 1 1 1), \"Ls\": 4" >links6
gives 0 slices4 slices4
gives 2 slices4 slices6
grep -q 'no row of slices4 is in slices6' err || complain "rows of 4 and 6 slices: $(cat err)"
gives 2 slices4 links6
grep -q 'same links: plaquette is 0.5 and 0.6' err || complain "rows of other links: $(cat err)"
# So are a field of the quark's own, a mean link and another number of modes.
report "bench dirac" "" "$(dirac a 1 1 1), \"flux_quanta\": 1" >flux1
report "bench dirac" "" "$(dirac a 1 1 1), \"flux_quanta\": 2" >flux2
gives 0 flux1 flux1
gives 2 flux1 flux2
report "bench dirac" '"u0": 0.8, "modes": {"count": 4},' "$(dirac a 1 1 1)" >modes4
report "bench dirac" '"u0": 0.8, "modes": {"count": 8},' "$(dirac a 1 1 1)" >modes8
report "bench dirac" '"u0": 0.9, "modes": {"count": 4},' "$(dirac a 1 1 1)" >mean9
gives 0 modes4 modes4
for other in modes8:modes.count.is.4.and.8 mean9:u0.is.0.8.and.0.9; do
  gives 2 modes4 ${other%:*}
  grep -q "same work: ${other#*:}$" err || complain "rows of $other: $(cat err)"
done
# Rows that differ in nothing are matched in their order; one without a time is named.
report "bench dirac" "" "$(dirac a 1 1 1)" "$(dirac a 2 2 2)" >old2
report "bench dirac" "" "$(dirac a 1 1 1)" "$(dirac a 2 null 2)" >new2
gives 0 old2 new2
says '^not timed in NEW: #2$'

# The other benchmarks: a mass, a shape, a number of bytes; deviations where no longest time is.
s='"solver": "cg", "backend": "x", "seconds_min": 1, "seconds_max": 1, "mass"'
report "bench solver" '"tolerance": 1e-8,' "$s: 0.1, \"seconds_median\": 1" "$s: 0.2, \"seconds_median\": 1" >old
report "bench solver" '"tolerance": 1e-8,' "$s: 0.1, \"seconds_median\": 1" "$s: 0.2, \"seconds_median\": 1.5" >new
gives 1 old new
says '^mass=0.2 .* slower$'
report "bench solver" '"tolerance": 1e-9,' "$s: 0.1, \"seconds_median\": 1" >other
gives 2 old other
g='"kernel": "k1", "m": 9, "n": 9'
report "bench gemm" "" "$g, \"k\": 9, \"seconds_median\": 1, \"seconds_mean\": 1, \"seconds_std\": 0.2" >old
report "bench gemm" "" "$g, \"k\": 9, \"seconds_median\": 1.2, \"seconds_mean\": 1.2, \"seconds_std\": 0" >new
gives 0 old new
says ' 20\.0%  slower\?$'
report "bench gemm" "" "$g, \"k\": 8, \"seconds_median\": 1.2" >other
gives 2 old other
report "bench copy" "" '"kernel": "copy", "bytes": 100, "seconds_median": 1' '"kernel": "copy", "bytes": 200, "seconds_median": 1' >old
report "bench copy" "" '"kernel": "copy", "bytes": 100, "seconds_median": 1.04' '"kernel": "copy", "bytes": 200, "seconds_median": 1.06' >new
gives 1 old new
says '^1 of 2 rows slower'

# A row that failed in NEW alone is not faster: a solve, a product whether it has a figure or none, a check of a suite.
for case in 'solver|"converged": true|"converged": false' 'gemm|"checked": "all", "excess": 0.5|"checked": "rows", "excess": 1.5' \
  'gemm|"checked": "all", "excess": 1|"checked": "all", "excess": null'; do
  IFS='|' read -r kind right wrong <<<"$case"
  report "bench $kind" "" "$right, \"seconds_median\": 1" >right
  report "bench $kind" "" "$wrong, \"seconds_median\": 0.5" >wrong
  report "bench $kind" "" "$wrong, \"seconds_median\": null" >untimed
  gives 1 right wrong
  says '^row .* failed$'
  says '^0 of 1 rows slower .*, 1 failed$'
  gives 0 wrong wrong
  gives 1 right untimed
  says '^not timed in NEW: row, where it failed$'
done
report "bench gemm" "" '"checked": "all", "excess": 1, "seconds_median": 1' >right
report "bench gemm" "" '"checked": "off", "excess": null, "seconds_median": 1' >unchecked
gives 0 right unchecked
report "bench suite" '"pass": true,' '"part": "hop", "seconds_median": 1' >right
report "bench suite" '"pass": false,' '"part": "hop", "seconds_median": 1' >wrong
gives 1 right wrong
says '^failed in NEW: a check of the suite$'
gives 0 wrong wrong
report "bench solver" "" "\"degree\": 4, $s: 0.1, \"seconds_median\": 1" >degree4
report "bench solver" "" "\"degree\": 8, $s: 0.1, \"seconds_median\": 1" >degree8
gives 2 degree4 degree8
# What reads the table may end before it.
report "bench dirac" "" "$(for i in $(seq 300); do printf '"kernel": "%0300d", "seconds_median": 1}, {' $i; done) \"seconds_median\": 1" >long
{ "$source_dir/scripts/compare.py" long long 2>err; echo $? >code; } | head -3 >out
[ "$(cat code)" = 141 ] && [ ! -s err ] || complain "a table cut short: exit $(cat code), $(head -3 err)"

# Ratios of one run: a hop that keeps its share of a memory of half the speed is not slower, one that
# loses it is; the bandwidth's own spread is noise; a command without such a figure is refused.
share() { echo "$(dirac $1 $2 $2 $2), \"bandwidth_gbytes_per_s\": 10, \"bandwidth_gbytes_per_s_min\": ${4:-10}, \"bandwidth_gbytes_per_s_max\": 10, \"roofline_fraction\": $3"; }
report "bench dirac" "" "$(share a 1 0.8)" "$(share b 1 0.8)" "$(share c 1 0.8)" >share-old
report "bench dirac" "" "$(share a 2 0.8)" "$(share b 1 0.4)" "$(share c 1 0.4 1)" >share-new
gives 1 share-old share-new --ratios --threshold 70
says '^backend=a +1\.25 +1\.25 +1\.000 .* same$'
says '^backend=b +1\.25 +2\.5 +2\.000 .* slower$'
says '^backend=c .* slower\?$'
report "bench copy" "" '"kernel": "copy", "bytes": 100, "seconds_median": 1' >share-copy
gives 2 share-copy share-copy --ratios
grep -q "^compare.py: error: 'bench copy' has no ratios" err || complain "copy has ratios: $(cat err)"

# Two suites: the figure of merit first, also on other ranks, and ratios of those parts that have some.
# suite RANKS FIGURE KEYS HOP COPY
suite() {
  report "bench suite" "\"class\": \"S\", \"action\": \"naive\", \"ranks\": $1, \"figure_of_merit\": $2, $3" \
    "\"part\": \"hop\", \"backend\": \"x\", \"ranks\": $1, \"transport\": \"t$1\", \"seconds_median\": $4, \"roofline_fraction\": $(awk "BEGIN { print 0.8 / $4 }")" \
    "\"part\": \"copy\", \"kernel\": \"copy\", \"ranks\": $1, \"threads\": $1, \"seconds_median\": $5" \
    '"part": "gemm", "kernel": "k", "seconds_median": 1, "vs_reference": 0.5, "speedup": 9' \
    '"part": "cg1", "solver": "cg", "seconds_median": 1, "speedup": 2'
}
suite 1 4 '"official": true, "sites_rhs_per_second_per_device": 100,' 1 1 >one
suite 2 6 '"official": false, "not_official": "2 s timed", "sites_rhs_per_second_per_device": 75,' 1.5 3 >two
gives 1 one two
[ "$(sed -n 2p out)" = "figure of merit: 4 6, new/old 1.500" ] || complain "the figure is not first: $(cat out)"
says '^sites x rhs / s, each: 100 75, new/old 0\.750$'
says '^note: the figure of NEW is not official: 2 s timed$'
says '^note: 1 and 2 ranks: rows of the same work'
says '^part=hop backend=x +1 +1\.5 +1\.500 .* slower$'
says '^part=copy kernel=copy .* slower$'
grep -q 'OLD is not\|only in' out && complain "one against two: $(cat out)"
gives 1 one two --ratios
says '^compared: 1 / roofline_fraction, vs_reference, speedup$'
says '^part=hop backend=x +1\.25 +1\.875 +1\.500 .* slower$'
says '^part=gemm kernel=k +2 +2 +1\.000 .* same$'
says '^part=cg1 solver=cg +0\.5 +0\.5 +1\.000 .* same$'
says '^1 of 3 rows slower'
# Speed-ups over different rows are taken over one that both reports have.
v() { echo "\"solver\": \"$1\", \"mass\": 0.1, \"seconds_median\": $2, \"speedup\": $3"; }
report "bench solver" '"tolerance": 1e-8,' "$(v slow 4 1)" "$(v fast 1 4)" >first
report "bench solver" '"tolerance": 1e-8,' "$(v fast 1 1)" "$(v slow 4 0.25)" >second
gives 0 --ratios first second
says '^solver=slow +1 +1 +1\.000 '
says '^solver=fast +0\.25 +0\.25 +1\.000 '
suite 1 null '' 1 1 >part
gives 0 one part
says '^0 of 4 rows slower'
grep -qE 'figure|note: .* ranks' out && complain "a figure of one run alone: $(cat out)"

# bad WORDS ARGUMENTS...: exit 2 and one line that says so.
bad() {
  gives 2 "${@:2}"
  [ "$(wc -l <err)" = 1 ] && grep -q "^compare.py: error: .*$1" err && [ ! -s out ] || complain "${*:2}: $(cat err out)"
}
echo '{' >broken
head -c 100 /dev/urandom >bytes
echo '[1]' >list
report "solve" "" >solve
report "bench copy" "" >empty
echo '{"command": "bench copy", "rows": [1]}' >numbers
echo '{"command": "bench copy", "rows": [], "schema_version": 2}' >later
python3 -c 'print("[" * 100000)' >deep
bad 'No such file' old none
bad 'no JSON' old broken
bad 'no JSON' bytes old
bad 'no JSON' old deep
bad 'names no command' list old
bad "is of 'solve'" solve solve
bad 'must be of one command' old solve
bad 'no row of' old empty
bad 'no list of rows' numbers old
bad 'schema version 2' later old
bad 'from 0 on, got -1' old new --threshold=-1
bad 'from 0 on, got nan' old new --threshold nan
bad 'invalid percent value' old new --threshold x
bad 'required: NEW' old
# Reports of the program itself.
for i in 1 2; do
  on 1 bench dirac --dims 4x4x4x4 --backends cpu_ref --precisions double --rhs 1 --repetitions 3 --quiet --json "$i.json" || complain "bench dirac"
done
gives 0 1.json 2.json --threshold 100000
finish
