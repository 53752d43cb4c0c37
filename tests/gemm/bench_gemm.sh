#!/usr/bin/env bash
# bench gemm as a user meets it: report keys, tables, ranks, and one clear line for bad input.
. "$(dirname "$0")/../program/common.sh"
cd "$work" || exit 1

refuses 2 "sizes from 1" 1 bench gemm --shapes 0x3x4
refuses 2 "got '-1x3x4'" 1 bench gemm --shapes -1x3x4
refuses 2 "MxNxK" 1 bench gemm --shapes 3x4
refuses 2 "MxNxK" 1 bench gemm --shapes 3x4x5x6
refuses 2 "sizes from 1" 1 bench gemm --shapes 99999999999999999999x1x1
refuses 2 "more bytes than fit" 1 bench gemm --shapes 4000000000x4000000000x4
refuses 3 "needs .* GB of memory .* available are" 1 bench gemm --shapes 3000000x3000000x1 --kernels naive
refuses 3 "needs .* GB of memory .* available are" 1 bench gemm --shapes 2x2x2,3000000x3000000x1 --kernels summa --baseline off
refuses 2 "go together" 1 bench gemm --rect 3x4
refuses 2 "go together" 1 bench gemm --k 3
refuses 2 "FROM:TO:STEP" 1 bench gemm --square 5:1:1
refuses 2 "FROM:TO:STEP" 1 bench gemm --square 1:5:0
refuses 2 "must be one of naive" 1 bench gemm --kernels fastest
refuses 2 "no variant" 1 bench gemm --kernels cpu_tiled:4x4
refuses 2 "takes inputs in" 1 bench gemm --kernels cpu_tiled --precision half
refuses 2 "--precision must be one of" 1 bench gemm --precision quad
refuses 2 "2x3 does not make 1 rank$" 1 bench gemm --process-grid 2x3
refuses 2 "process grid must hold every rank once: 3000000000x1 does not make 1 rank$" 1 bench gemm --process-grid 3000000000x1
refuses 2 "--block takes" 1 bench gemm --block 0x4
refuses 2 "none of them empty" 1 bench gemm --shapes 4x4x4,
refuses 2 "summa takes sizes up to" 1 bench gemm --kernels summa --shapes 8x8x8,2200000000x1x1 --baseline off
refuses 2 '--block has no effect without a kernel over ranks' 1 bench gemm --shapes 8x8x8 --block 4x4
refuses 2 '--panel has no effect without summa' 2 bench gemm --kernels block_cyclic --panel 4
refuses 2 '--local-kernel has no effect without block_cyclic' 1 bench gemm --kernels cpu_tiled --local-kernel naive
refuses 2 '--pitched has no effect without a kernel on a device' 1 bench gemm --kernels cpu_tiled --pitched
refuses 2 'alpha must be 0 or have a size from 1.18e-38 to 3.4e.38 in precision single, got 1e.300' 1 bench gemm --kernels cpu_tiled --alpha 1e300
refuses 2 'beta must be 0 or have a size from 2.23e-308' 1 bench gemm --kernels cpu_tiled --precision double --beta 1e-320
refuses 2 '.alpha. k . .beta. must be at most 3.4e.38 in precision single, got 6e.40; take smaller' 1 bench gemm --kernels cpu_tiled --shapes 300x300x200 --alpha 3e38
refuses 2 'must be at most 1.8e.308 in precision double' 1 bench gemm --kernels cpu_tiled --precision double --shapes 2x2x1 --alpha 1e308 --beta 1e308
# Sums that underflow are no fault of a kernel; a seed is told with all of its digits.
on 1 bench gemm --shapes 300x300x2 --alpha 1.3e-38 --kernels naive,cpu_tiled --repeat 1 --seed 9007199254740991 --quiet --json seed.json || complain "products of subnormal numbers"
grep -q '"seed":[[:space:]]*9007199254740991,' seed.json || complain "the seed of the report: $(grep seed seed.json)"
refuses 3 'bench gemm timed nothing: slow above 1024' 1 bench gemm --shapes 1300x1000x1000 --kernels all --precision half
refuses 2 "block sizes must be" 1 bench gemm --kernels block_cyclic --block 9999999999x1
refuses 2 "--check takes" 1 bench gemm --check maybe
refuses 2 "--repeat must lie" 1 bench gemm --repeat 0
refuses 2 "--seed must lie" 1 bench gemm --seed 9007199254740993
refuses 2 "two-dimensional" 1 bench gemm --grid 1x1x2x1
refuses 2 "bench gemm does not know" 1 bench gemm --size 4
"$minidirac" bench 2>err && complain "bench without a kind"
grep -q "needs a kind" err || complain "bench without a kind: $(cat err)"

"$minidirac" bench gemm --help >help || complain "--help"
for option in shapes square rect kernels precision repeat check seed csv json process-grid; do
  grep -q -- "--$option" help || complain "--help does not name --$option"
done

"$minidirac" bench gemm --shapes 31x17x40,5x1x3 --precision double,single --repeat 3 --alpha 0.5 \
  --beta -2 --json report.json --csv rows.csv --quiet >out || complain "a small run"
[ -s out ] && complain "--quiet printed $(head -1 out)"
# Above the size of --check 16 rows of every rank are compared.
on 1 bench gemm --shapes 30x20x40 --kernels naive,cpu_tiled --check 8 --repeat 1 --quiet --json rows-1.json || complain "--check 8"
on 2 bench gemm --shapes 60x20x40 --kernels block_cyclic,summa --check 8 --repeat 1 --quiet --json rows-2.json || complain "--check 8, 2 ranks"
"$minidirac" bench gemm --rect 12x9 --k 1,8,156 --square 3:9:3 --kernels naive,cpu_tiled \
  --json - --repeat 1 >sweep.json || complain "a sweep"
mpirun -n 3 "$minidirac" bench gemm --shapes 20x30x300,1x2x2 --block 3x4 --process-grid 3x1 \
  --kernels block_cyclic,summa --precision double --repeat 2 --json ranks.json >out ||
  complain "three ranks"
grep -q "scatter" out || complain "the times of scatter, product and gather are not in the table"
timeout 60 mpirun -n 2 "$minidirac" bench gemm --process-grid 3x1 >out 2>err
[ $? = 2 ] || complain "a grid that does not fit the ranks: exit code"
[ "$(grep -c 'minidirac: error' err)" = 1 ] || complain "a grid that does not fit: $(cat err)"
timeout 60 mpirun -n 2 "$minidirac" bench gemm --kernels block_cyclic --local-kernel cpu_tiled \
  --precision bf16 >out 2>err
[ $? = 2 ] || complain "a local kernel that lacks the precision: exit code"

python3 - <<'PY' || complain "the reports"
import csv, json, math
keys = ["kernel", "precision", "m", "n", "k", "ranks", "grid", "seconds_mean", "seconds_std",
        "gflops_kernel", "gflops_total", "speedup", "relative_error", "vs_reference"]
def close(value, told):
    assert abs(value / told - 1) < 1e-9, (value, told)
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
    flops, own = 2e-9 * row["m"] * row["n"] * row["k"], [r for r in report["rows"] if all(
        r[key] == row[key] for key in ("precision", "m", "n", "k"))]
    close(row["gflops_kernel"], flops / row["seconds_median"])
    close(row["gflops_total"], flops / row["seconds_total_median"])
    # The sequential product behind the speedup, and the library beside the row.
    close(row["speedup"] * row["seconds_total_median"], own[0]["speedup"] * own[0]["seconds_total_median"])
    library = [r["seconds_median"] for r in own if r["kernel"] == "openblas"]
    assert row["vs_reference"] is None or library, row
    if row["vs_reference"] is not None:
        close(row["vs_reference"], library[0] / row["seconds_median"])
for name in ("rows-1.json", "rows-2.json"):
    rows = json.load(open(name))["rows"]
    assert len(rows) == 2 and all(row["checked"] == "rows" and row["excess"] <= 1 for row in rows), rows
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

# No ratio with a reference on other threads, and no nan where there is nothing to tell.
"$minidirac" bench gemm --shapes 48x48x48 --kernels naive,cpu_tiled --repeat 1 --check off --baseline off \
  --threads 2 --json plain.json >out || complain "a run without baseline"
grep -qiw nan out && complain "the table has nan: $(cat out)"
grep -qE '^naive .* - +- +- +-$' out || complain "what is not there is a dash: $(cat out)"
if "$minidirac" bench gemm --shapes 48x48x48 --kernels naive,cpu_tiled,openblas --repeat 1 --threads 2 \
  --json two.json >out 2>/dev/null; then
  grep -q 'on 1 thread, the reference on 2: no vs_ref' out || complain "one thread against two: $(cat out)"
  refuses 2 "openblas takes sizes up to" 1 bench gemm --kernels openblas --shapes 8x8x8,2200000000x1x1 --baseline off
  OPENBLAS_NUM_THREADS=1 "$minidirac" bench gemm --shapes 48x48x48 --kernels cpu_tiled,openblas --repeat 1 \
    --threads 2 --json one.json --quiet || complain "OPENBLAS_NUM_THREADS=1"
  python3 - <<'PY' || complain "threads of the reference"
import json
two = {r["kernel"]: r for r in json.load(open("two.json"))["rows"]}
assert [two[k]["threads"] for k in ("naive", "cpu_tiled", "openblas")] == [1, 2, 2], two
assert two["naive"]["vs_reference"] is None and two["naive"]["reference_threads"] == 2
assert two["cpu_tiled"]["vs_reference"] > 0 and two["openblas"]["vs_reference"] == 1
assert all(r["threads"] == 2 and r["vs_reference"] for r in json.load(open("one.json"))["rows"])
PY
fi
# A library whose product has one wrong element, or no number there, is found out, also behind right ones and in sampled rows.
# A suite with a product that is wrong is none to be called official.
if [ -n "${3:-}" ]; then
  LD_PRELOAD=$3 on 1 bench suite --class XS --inner none --operators cpu_simd --repetitions 2 --json suite.json >out 2>err
  [ $? = 1 ] && [ "$(key official suite.json)" = false ] && key not_official suite.json | grep -q 'a check failed' || complain "a suite with a wrong product: $(tail -1 out err)"
fi
for spoiled in ${3:+wrong nan}; do
  for kernels in openblas,naive naive,openblas; do
    (
      export LD_PRELOAD=$3
      [ $spoiled = wrong ] || export SPOILED=$spoiled
      "$minidirac" bench gemm --shapes 40x20x10 --kernels $kernels --repeat 1 --check 8 --quiet >out 2>err
    )
    [ $? = 1 ] && grep -q 'every element must be within its rounding bound: openblas is off by' err || complain "$kernels, $spoiled: $(tail -1 err)"
  done
done
finish
