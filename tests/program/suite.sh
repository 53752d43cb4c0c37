#!/usr/bin/env bash
# bench suite: golden numbers on 1 and 2 ranks, a figure of merit of a whole run alone, what a FAIL
# looks like, files removed.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
export OMP_NUM_THREADS=1
for ranks in 1 2; do
  on $ranks bench suite --class XS --parts hop,cg1,halo,gemm,io --inner none,single --repetitions 1 --json $ranks.json >out ||
    complain "$ranks ranks: exit $?: $(grep FAIL out)"
  [ "$(key pass $ranks.json)" = true ] || complain "$ranks ranks: pass is $(key pass $ranks.json)"
  [ "$(key class $ranks.json)" = '"XS"' ] || complain "$ranks ranks: class is $(key class $ranks.json)"
  [ "$(key figure_of_merit $ranks.json)" = null ] || complain "a figure of merit of some parts alone"
  grep -q 'PASS  condensate, .* inner single' out || complain "$ranks ranks: the solution was not checked"
  grep -q 'PASS  plaquette: 0.593476806219256' out || complain "$ranks ranks: the plaquette was not checked"
  [[ "$(key links_made_on $ranks.json)" =~ ^\"(cpu|gpu)\"$ ]] || complain "$ranks ranks: links_made_on is $(key links_made_on $ranks.json)"
done
grep -qE '^(cpu_simd .* mpi|cuda .* [a-z_]+) ' out || complain "no halo on 2 ranks"
[ -z "$(ls minidirac-suite* 2>/dev/null)" ] || complain "files were left: $(ls minidirac-suite*)"
if [ "$(key links_made_on 2.json)" = '"cpu"' ]; then # what is absent is one line
  grep -qE '^absent: no GPU that this build serves \(cuda, tensor left out\)' out || complain "no line about the GPU that is absent"
  grep -qE '^(cuda|tensor) .*not timed' out && complain "lines about what is absent: $(grep 'not timed' out)"
  [ "$(key backends 2.json)" = '"cuda, tensor"' ] || complain "skipped: $(key backends 2.json)"
  refuses 3 'part hop of bench suite timed nothing: ' 1 bench suite --class XS --parts copy,hop --transport staged --repetitions 1
fi
# While others keep two cores busy.
while :; do :; done & one=$!
while :; do :; done & two=$!
on 1 bench suite --class XS --action hisq --inner none --repetitions 2 --json whole.json --csv whole.csv >out || complain "whole: exit $?"
kill $one $two
awk -v f="$(key figure_of_merit whole.json)" 'BEGIN { exit !(f > 0) }' || complain "figure of merit: $(key figure_of_merit whole.json)"
grep -qE '^PASS  class XS, hisq, mass 0.1: [0-9.]+ right-hand sides.*at once\); not official: [0-9.e-]+ s timed, 60 needed' out ||
  complain "no verdict: $(tail -2 out)"
grep -qE '^      [0-9.e+]+ sites x right-hand sides per second, [0-9.]+ GFLOP/s; each of 1 (core|GPU): [0-9.e+]+, [0-9.]+' out ||
  complain "no figures under the verdict: $(tail -2 out)"
[ "$(grep -cE '^absent: ' out)" = 1 ] && [ "$(grep -cE 'no GPU|RAPL|NVML|no sensors|halo' out)" = 1 ] ||
  complain "lines about what is absent: $(grep -E 'no GPU|RAPL|NVML|no sensors|halo' out)"
grep -q '^absent: .*no second rank (halo left out)' out || complain "no word of the halo that one rank lacks"
grep -q '^warm-up    untimed: 3 iterations of each solve' out || complain "no word of the warm-up"
python3 - whole.json <<'END' || complain "figures: $(grep -E '"(figure|sites|dev|busy|off|not)' whole.json)"
import json, sys
r = json.load(open(sys.argv[1]))
near = lambda a, b: abs(a - b) <= 1e-9 * abs(b)
row = min((w for w in r["rows"] if w["part"] in ("cg1", "cg16")), key=lambda w: w["seconds_median"] / w["rhs"])
assert near(r["figure_of_merit"], row["rhs"] / row["seconds_median"]) and r["figure_of_merit_repetitions"] == 2
assert near(r["sites_rhs_per_second"], 8**4 * r["figure_of_merit"])
# Deo and Doe of each iteration, 1146 flops a site and right-hand side, and a little more.
flops = row["iterations"] * 8**4 * 1146 * row["rhs"]
assert flops < 1e9 * r["figure_gflops"] * row["seconds_median"] < 1.1 * flops, flops
assert r["devices"] == 1 and r["devices_are"] in ("cores", "GPUs")
for key in ("sites_rhs_per_second", "figure_gflops"):
    assert near(r[key + "_per_device"], r[key])
energy, sites = r["figure_of_merit_per_joule"], r["sites_rhs_per_joule"]
assert (energy is sites is r["figure_gflop_per_joule"] is None) if row["joules"] is None else near(sites, 8**4 * energy)
spread = (row["seconds_max"] - row["seconds_min"]) / row["seconds_median"]
assert near(r["figure_of_merit_spread"], spread)
assert near(r["figure_of_merit_seconds"], row["seconds_min"] + row["seconds_max"]) and row["seconds_timed"] == r["figure_of_merit_seconds"]
assert r["official"] is False and "s timed, 60 needed" in r["not_official"]
assert ("repetitions spread by" in r["not_official"]) == (spread > 0.05)
assert r["sensors"] == row["sensors"] and r["sensors"]["samples"] > 0
assert ("slowed by " + r["sensors"]["slowed_by"] in r["not_official"]) == bool(r["sensors"]["slowed_by"])
for name in ("cpu_clock_mhz", "cpu_power_w", "cpu_temperature_c"):
    if name in r["sensors"]:
        low, middle, high = r["sensors"][name]
        assert 0 <= low <= middle <= high
cores = r["machine"]["cores"]
if r["busy_cores"] is not None:
    assert min(1, 0.05 * cores) < r["busy_cores"] < cores and "machine busy: others took" in r["not_official"]
assert r["warm_up"].startswith("3 iterations")
END
python3 - whole.json whole.csv <<'END' || complain "CSV: $(head -3 whole.csv)"
import csv, json, sys
rows, table = json.load(open(sys.argv[1]))["rows"], list(csv.DictReader(open(sys.argv[2])))
assert len(table) == len(rows) and {row["part"] for row in table} == {"copy", "hop", "cg1", "cg16", "gemm", "io"}
for row, line in zip(rows, table):
    for key, cell in line.items():
        value = row.get(key, row.get("gflops_kernel") if key == "gflops" else None)
        assert str(cell) == ("" if value is None else value if isinstance(value, str) else f"{value:.10g}"), (key, cell, value)
assert all(line["gflops"] for line in table if line["part"] in ("hop", "cg16", "gemm"))
END
# A row of the suite is that of the command that makes it alone: the same work, bytes and threads in the same place.
on 1 bench dirac --dims 8x8x8x8 --action hisq --backends cpu_simd --precisions double --rhs 1,16 --repetitions 2 --json alone.json --quiet || complain "alone: exit $?"
python3 - whole.json alone.json <<'END' || complain "rows of the suite and of bench dirac differ"
import json, sys
suite, alone = (json.load(open(name)) for name in sys.argv[1:])
keys = ("backend", "packing", "precision", "reconstruct", "rhs", "action", "dims", "ranks", "mode", "bandwidth")
rows = {tuple(map(str, map(row.get, keys))): row for row in alone["rows"]}
found = [row for row in suite["rows"] if row["part"] == "hop" and row["backend"] == "cpu_simd" and row["precision"] == "double"]
assert len(found) >= 2 and suite["threads"] == alone["threads"] and suite["waiting"] == alone["waiting"]
for row in found:
    other = rows[tuple(map(str, map(row.get, keys)))]
    assert row.keys() - {"part"} == other.keys() and row["repetitions"] == other["repetitions"]
    for key in ("gflops", "gbytes_per_s", "no_reuse_gbytes_per_s"):
        ratio = row[key] * row["seconds_median"] / (other[key] * other["seconds_median"])
        assert abs(ratio - 1) < 1e-9, (key, ratio)
    assert row["site_bytes"] == other["site_bytes"]
END
# --seconds: repetitions until they are timed, as many on each rank.
on 2 bench suite --class XS --parts cg1 --inner none,single --repetitions 1 --seconds 0.4 --json seconds.json --quiet || complain "--seconds: exit $?"
python3 - seconds.json <<'END' || complain "--seconds: $(grep -E '"(seconds|repe)' seconds.json)"
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    assert row["seconds_timed"] >= 0.4 and (row["repetitions"] > 1 or row["seconds_min"] >= 0.4), row
    assert row["seconds_timed"] < 0.4 + 1.1 * row["seconds_max"], row
END
"$source_dir/scripts/compare.py" whole.json whole.json --threshold 1 >out 2>&1 || complain "compare.py: $(tail -2 out)"
grep -q '^0 of [0-9]* rows slower' out || complain "compare.py says: $(tail -2 out)"
# Quarks with four spins have golden numbers too.
on 1 bench suite --class XS --action wilson --parts hop,cg1 --inner single --repetitions 1 --json wilson.json >out || complain "wilson: exit $?"
grep -q 'PASS  condensate, .* inner single' out || complain "wilson: the solution was not checked"
[ "$(key golden_condensate wilson.json)" = true ] || complain "wilson: golden_condensate is $(key golden_condensate wilson.json)"
# The links of the host and of the GPU, where there is one, have the same golden plaquette.
on 1 bench suite --class XS --parts io --operators cpu_simd --links-on cpu --json cpu.json --quiet || complain "--links-on cpu: exit $?"
[ "$(key links_made_on cpu.json)" = '"cpu"' ] || complain "--links-on cpu: made on $(key links_made_on cpu.json)"
on 1 bench suite --class XS --parts io --operators cpu_simd --json auto.json --quiet || complain "--links-on auto: exit $?"
for ranks in 1 2; do
  on $ranks bench suite --class XS --parts io --operators cpu_simd --links-on gpu --json gpu.json >out 2>err
  got=$?
  expected=gpu
  [ $got = 3 ] && grep -qE 'GPU code needs|has no GPU support' err && expected=cpu
  # Unasked a GPU makes them where there is one, whatever the operators.
  [ "$(key links_made_on auto.json)" = "\"$expected\"" ] || complain "--links-on auto: made on $(key links_made_on auto.json)"
  [ $expected = cpu ] && continue
  [ $got = 0 ] && grep -q 'PASS  plaquette: 0.59347680' out || complain "--links-on gpu on $ranks ranks: exit $got, $(cat err)"
  [ "$(key links_made_on gpu.json)" = '"gpu"' ] || complain "--links-on gpu: made on $(key links_made_on gpu.json)"
done
refuses 2 'needs --class XS.S.M.L.XL' 1 bench suite
refuses 2 '--parts must name each part once, got cg1 twice' 1 bench suite --class XS --parts cg1,copy,cg1
# Each check has a name of its own, also of solves of links of 18 and 12 reals.
on 1 bench suite --class XS --parts cg1 --operators cpu_simd:none:18,cpu_simd:none:12 --inner none --repetitions 1 --json reals.json --quiet || complain "reals: exit $?"
python3 - reals.json <<'END' || complain "checks of one name: $(grep '"name"' reals.json)"
import json, sys
names = [check["name"] for check in json.load(open(sys.argv[1]))["checks"]]
assert len(set(names)) == len(names) and "true residual, cpu_simd none reconstruct 12 inner none rhs 1" in names, names
END
# Products of matrices leave the options of the suite as they are.
on 1 bench suite --class XS --parts gemm,cg1 --operators cpu_simd --inner none --repetitions 1 --tune=t.json --json tuned.json --quiet || complain "--tune: exit $?"
grep -q '"tuned":' tuned.json || complain "no choices of a suite with gemm"
# A whole suite without a solve is no suite: cuda has no packing block8, be there a GPU or none.
on 1 bench suite --class XS --operators cuda:block8 --repetitions 1 --json unsolved.json >out 2>err
[ $? = 3 ] || complain "a suite without a solve: $(tail -1 out) $(cat err)"
grep -q '^FAIL  no figure of merit: no solve passed' out && grep -qP '^\t"pass":\s*false' unsolved.json || complain "a suite without a solve says $(tail -1 out)"
grep -q 'a suite with solves must have one that ran' err || complain "a suite without a solve: $(cat err)"
refuses 2 '--links-on must be one of auto.cpu.gpu' 1 bench suite --class XS --links-on device
refuses 2 '--class must be one of XS.S.M.L.XL' 1 bench suite --class Q
refuses 3 'a suite with solves must have one that ran' 1 bench suite --class XS --parts cg1 --operators cpu_simd:none:8 --inner none
refuses 2 '--inner has no effect without --parts cg1 or cg16' 1 bench suite --class XS --parts hop --inner none
refuses 2 '--transport has no effect without --parts hop, cg1' 1 bench suite --class XS --parts copy --transport staged
refuses 2 '--transport must be one of auto, mpi, peer' 1 bench suite --class XS --parts hop --transport pigeon
refuses 3 'bench suite timed nothing: one rank has no halo' 1 bench suite --class XS --parts halo
refuses 2 '--repetitions has no effect without --parts copy' 1 bench suite --class XS --parts io --repetitions 1
refuses 2 '--scratch has no effect without --parts io' 1 bench suite --class XS --parts copy --scratch .
refuses 2 '--parts must be one of copy.hop' 1 bench suite --class XS --parts hops
(ulimit -f 1000 && exec "$minidirac" bench suite --class XS --parts copy,io --scratch "$work" --json full.json) >out 2>err
[ $? = 1 ] && grep -q '^FAIL' out && grep -qP '^\t"pass":\s*false' full.json || complain "a full disk of scratch: $(tail -1 out) $(cat err)"
refuses 3 'nowhere' 2 bench suite --class XS --parts io --scratch "$work/nowhere"
finish
