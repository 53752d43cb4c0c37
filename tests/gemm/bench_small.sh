#!/usr/bin/env bash
# bench transpose, shift and gemv as a user meets them.
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
refused() {
  local code=$1 words=$2
  shift 2
  "$minidirac" bench "$@" >out 2>err
  local got=$?
  [ $got = "$code" ] || fail "$*: exit $got, expected $code"
  [ "$(wc -l <err)" = 1 ] || fail "$*: $(wc -l <err) lines on stderr"
  grep -qF -- "$words" err || fail "$*: '$(cat err)' lacks '$words'"
}
for kind in transpose shift gemv; do
  refused 2 "--dims takes" $kind --dims 0x5
  refused 2 "--dims takes" $kind --dims 5
  refused 2 "--repeat must lie" $kind --repeat 0
  "$minidirac" bench $kind --help | grep -q -- --dims || fail "$kind --help"
  "$minidirac" bench $kind --dims 65x37 --repeat 2 --json $kind.json --csv $kind.csv --quiet ||
    fail "$kind"
  mpirun -n 2 "$minidirac" bench $kind --dims 4x4 >out 2>err
  [ $? = 2 ] || fail "$kind on two ranks: exit code"
  grep -q "runs on one rank, got 2" err || fail "$kind on two ranks: $(cat err)"
done
for kind in transpose shift; do
  refused 2 "--blocks takes" $kind --blocks 0x4
  refused 2 "--blocks takes" $kind --blocks 32x4,,
  refused 3 "must fit the memory" $kind --dims 1000000000x1000000
done
refused 2 "sizes up to 32" transpose --blocks 33x1
refused 2 "up to 1024 threads" shift --blocks 64x32
refused 2 "--type must be one of" gemv --type half

python3 - <<'PY' || fail "the reports"
import csv, json
for kind, key in (("transpose", "block"), ("shift", "block"), ("gemv", "type")):
    report = json.load(open(kind + ".json"))
    assert report["command"] == "bench " + kind
    assert report["copy_host_gbytes_per_s"] > 0
    assert len(report["rows"]) > 0
    for row in report["rows"]:
        for name in (key, "kernel", "space", "seconds_mean", "seconds_std", "seconds_median",
                     "gbytes_per_s", "copy_fraction", "repetitions"):
            assert name in row, (kind, name)
    assert len(list(csv.DictReader(open(kind + ".csv")))) == len(report["rows"])
blocks = {tuple(r["block"]) for r in json.load(open("transpose.json"))["rows"]}
assert blocks == {(x, y) for x in (16, 32) for y in range(1, 33)}, blocks
assert {r["type"] for r in json.load(open("gemv.json"))["rows"]} == {"integer", "single"}
PY
[ $bad = 0 ] && echo "bench transpose, shift, gemv: in order"
exit $bad
