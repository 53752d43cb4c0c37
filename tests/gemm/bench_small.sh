#!/usr/bin/env bash
# bench transpose, shift and gemv as a user meets them.
. "$(dirname "$0")/../program/common.sh"
cd "$work" || exit 1

for kind in transpose shift gemv; do
  refuses 2 "--dims takes" 1 bench $kind --dims 0x5
  refuses 2 "--dims takes" 1 bench $kind --dims 5
  refuses 2 "--repeat must lie" 1 bench $kind --repeat 0
  refuses 2 "--type must be one of" 1 bench $kind --type half
  refuses 2 "--space must be one of" 1 bench $kind --space moon
  "$minidirac" bench $kind --help | grep -q -- --dims || complain "$kind --help"
  "$minidirac" bench $kind --dims 65x37 --repeat 2 --json $kind.json --csv $kind.csv --quiet ||
    complain "$kind"
  "$minidirac" bench $kind --dims 9x5 --repeat 1 --type single --space host --json one.json --quiet ||
    complain "$kind of one type and space"
  mpirun -n 2 "$minidirac" bench $kind --dims 4x4 >out 2>err
  [ $? = 2 ] || complain "$kind on two ranks: exit code"
  grep -q "runs on one rank, got 2" err || complain "$kind on two ranks: $(cat err)"
done
for kind in transpose shift; do
  refuses 2 "--blocks takes" 1 bench $kind --blocks 0x4
  refuses 2 "--blocks takes" 1 bench $kind --blocks 32x4,,
  refuses 3 "needs .* GB of memory .* available are" 1 bench $kind --dims 1000000000x1000000
done
refuses 2 "sizes up to 32" 1 bench transpose --blocks 33x1
refuses 2 "up to 1024 threads" 1 bench shift --blocks 64x32

python3 - <<'PY' || complain "the reports"
import csv, json
for kind, key in (("transpose", "block"), ("shift", "block"), ("gemv", "rows")):
    report = json.load(open(kind + ".json"))
    assert report["command"] == "bench " + kind
    assert report["copy_host_gbytes_per_s"] > 0
    assert {r["type"] for r in report["rows"]} == {"integer", "single"}
    for row in report["rows"]:
        for name in (key, "kernel", "type", "space", "seconds_mean", "seconds_std", "seconds_median",
                     "gbytes_per_s", "copy_fraction", "repetitions"):
            assert name in row, (kind, name)
    assert len(list(csv.DictReader(open(kind + ".csv")))) == len(report["rows"])
blocks = {tuple(r["block"]) for r in json.load(open("transpose.json"))["rows"]}
assert blocks == {(x, y) for x in (16, 32) for y in range(1, 33)}, blocks
one = json.load(open("one.json"))["rows"]
assert {(r["type"], r["space"]) for r in one} == {("single", "host")}, one
PY
finish
