#!/usr/bin/env bash
# bench gemm as a user meets it: report keys, tables, ranks, and one clear line for bad input.
set -u
minidirac=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
fail() {
  echo "FAIL: $*"
  bad=1
}
# refused EXIT WORDS ARGUMENTS...: that exit code, and one error line with those words.
refused() {
  local code=$1 words=$2
  shift 2
  "$minidirac" bench gemm "$@" >out 2>err
  local got=$?
  [ $got = "$code" ] || fail "$*: exit $got, expected $code"
  [ "$(wc -l <err)" = 1 ] || fail "$*: $(wc -l <err) lines on stderr"
  grep -qF -- "$words" err || fail "$*: '$(cat err)' lacks '$words'"
}

refused 2 "sizes from 1" --shapes 0x3x4
refused 2 "got '-1x3x4'" --shapes -1x3x4
refused 2 "MxNxK" --shapes 3x4
refused 2 "MxNxK" --shapes 3x4x5x6
refused 2 "sizes from 1" --shapes 99999999999999999999x1x1
refused 2 "more bytes than fit" --shapes 4000000000x4000000000x4
refused 3 "must fit the memory" --shapes 3000000x3000000x1 --kernels naive
refused 2 "go together" --rect 3x4
refused 2 "go together" --k 3
refused 2 "FROM:TO:STEP" --square 5:1:1
refused 2 "FROM:TO:STEP" --square 1:5:0
refused 2 "must be one of naive" --kernels fastest
refused 2 "no variant" --kernels cpu_tiled:4x4
refused 2 "takes inputs in" --kernels cpu_tiled --precision half
refused 2 "--precision must be one of" --precision quad
refused 2 "2x3 does not make 1 ranks" --process-grid 2x3
refused 2 "--block takes" --block 0x4
refused 2 "--check takes" --check maybe
refused 2 "--repeat must lie" --repeat 0
refused 2 "two-dimensional" --grid 1x1x2x1
refused 2 "bench gemm does not know" --size 4
"$minidirac" bench 2>err && fail "bench without a kind"
grep -q "needs a kind" err || fail "bench without a kind: $(cat err)"

"$minidirac" bench gemm --help >help || fail "--help"
for option in shapes square rect kernels precision repeat check seed csv json process-grid; do
  grep -q -- "--$option" help || fail "--help does not name --$option"
done

"$minidirac" bench gemm --shapes 31x17x40,5x1x3 --precision double,single --repeat 3 --alpha 0.5 \
  --beta -2 --json report.json --csv rows.csv --quiet >out || fail "a small run"
[ -s out ] && fail "--quiet printed $(head -1 out)"
"$minidirac" bench gemm --rect 12x9 --k 1,8,156 --square 3:9:3 --kernels naive,cpu_tiled \
  --json - --repeat 1 >sweep.json || fail "a sweep"
mpirun -n 3 "$minidirac" bench gemm --shapes 20x30x300,1x2x2 --block 3x4 --process-grid 3x1 \
  --kernels block_cyclic,summa --precision double --repeat 2 --json ranks.json >out ||
  fail "three ranks"
grep -q "scatter" out || fail "the times of scatter, product and gather are not in the table"
timeout 60 mpirun -n 2 "$minidirac" bench gemm --process-grid 3x1 >out 2>err
[ $? = 2 ] || fail "a grid that does not fit the ranks: exit code"
[ "$(grep -c 'minidirac: error' err)" = 1 ] || fail "a grid that does not fit: $(cat err)"
timeout 60 mpirun -n 2 "$minidirac" bench gemm --kernels block_cyclic --local-kernel cpu_tiled \
  --precision bf16 >out 2>err
[ $? = 2 ] || fail "a local kernel that lacks the precision: exit code"

python3 - <<'PY' || fail "the reports"
import csv, json, math
keys = ["kernel", "precision", "m", "n", "k", "ranks", "grid", "seconds_mean", "seconds_std",
        "gflops_kernel", "gflops_total", "speedup", "relative_error", "vs_reference"]
report = json.load(open("report.json"))
for key in ["command", "version", "commit", "ranks", "threads", "grid", "seconds", "rows"]:
    assert key in report, key
assert report["seed"] == 987654
for row in report["rows"]:
    for key in keys:
        assert key in row, key
    assert row["relative_error"] <= row["relative_bound"], row
    assert row["checked"] == "all"
    assert row["seconds_mean"] > 0 and row["grid"] == [1, 1] and row["ranks"] == 1
names = {row["kernel"] for row in report["rows"]}
assert {"naive", "cpu_tiled"} <= names, names
table = list(csv.DictReader(open("rows.csv")))
assert len(table) == len(report["rows"])
assert [r["kernel"] for r in table] == [r["kernel"] for r in report["rows"]]
assert table[0]["grid"] == "1x1"
sweep = [(r["m"], r["n"], r["k"]) for r in json.load(open("sweep.json"))["rows"][::2]]
assert sweep == [(3, 3, 3), (6, 6, 6), (9, 9, 9), (12, 9, 1), (12, 9, 8), (12, 9, 156)], sweep
ranks = json.load(open("ranks.json"))
assert ranks["grid"] == [3, 1, 1, 1] and len(ranks["rows"]) == 4
for row in ranks["rows"]:
    assert row["ranks"] == 3 and row["grid"] == [3, 1] and row["block"] == [3, 4, 256]
    assert row["relative_error"] <= row["relative_bound"]
    assert (row["seconds_scatter"] > 0) == (row["kernel"] == "block_cyclic")
    assert row["seconds_product"] > 0
PY
[ $bad = 0 ] && echo "bench gemm: in order"
exit $bad
