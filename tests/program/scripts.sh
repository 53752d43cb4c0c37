#!/usr/bin/env bash
# Every script says what it is for with --help, and those that plot name matplotlib where it is
# missing.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
for script in "$source_dir"/scripts/*.sh "$source_dir"/scripts/[!p]*.py "$source_dir"/scripts/plot_*.py; do
  name=$(basename "$script")
  timeout 20 "$script" --help >out 2>err || complain "$name --help: exit $?, $(head -3 err)"
  [ -s out ] && [ ! -s err ] || complain "$name --help: $(head -3 err)"
  grep -q "$name" out || complain "$name --help does not name it"
done

"$source_dir/scripts/performance.py" --check || complain "PERFORMANCE.md: exit $?"
# A machine more in results/, as if that report were of a GPU; a part of the suite, or what was changed by hand, is none.
mkdir tree && cp -r "$source_dir"/{scripts,bench,results,PERFORMANCE.md} tree
python3 - "$source_dir"/results/*.json <<'P'
import json, sys
report = json.load(open(sys.argv[1]))["report"]
report["machine"]["gpu"] = [{"name": "abacus"}]
report.update(devices=1, devices_are="GPUs")
json.dump(report, open("gpu.json", "w"))
json.dump({**report, "figure_of_merit": None}, open("part.json", "w"))
json.dump({**report, "figure_of_merit": float("nan")}, open("nan.json", "w"))
json.dump({key: value for key, value in report.items() if key != "class"}, open("damaged.json", "w"))
P
add() { tree/scripts/performance.py --add "$1" "$2" tree/scripts/cluster/gpu.slurm 2>err; }
add abacus gpu.json && tree/scripts/performance.py --check || complain "--add: $(tail -1 err)"
grep -qF '| [abacus](results/abacus.json) | 1 GPU |' tree/PERFORMANCE.md || complain "--add has no line of the machine"
for report in absent.json tree/PERFORMANCE.md nan.json damaged.json; do
  add absent $report && complain "--add takes $report"
  [ "$(wc -l <err)" = 1 ] && grep -q '^performance.py: error: ' err || complain "--add $report: $(tail -1 err)"
done
add part part.json && complain "a part of the suite is a result"
add ../part gpu.json && complain "a result is put into another folder"
sed -i 's/"devices": 1/"devices": 2/' tree/results/abacus.json
tree/scripts/performance.py >out 2>err && complain "a result that was changed stands"
grep -q 'abacus.json must have the sha256' err || complain "changed result: $(tail -1 err)"

# A matplotlib that cannot be imported, before all others.
mkdir none
echo 'raise ImportError("none here")' >none/matplotlib.py
printf 'backend,packing,precision,reconstruct,rhs,dims,gflops,bandwidth_gbytes_per_s,site_bytes,roofline_fraction\n' >d.csv
printf 'cpu_simd,none,double,18,1,4x4x4x4,1,1,1248,1\n' >>d.csv
printf 'kernel,precision,m,n,k,gflops_kernel,vs_reference\nnaive,single,4,4,4,1,1\n' >g.csv
echo '{"histogram_lowest_log10": -18, "histogram_step_log10": 0.5, "rows": [], "solver": [], "links": []}' >v.json
echo '{"lattice": "a.lime", "mass": 0.1, "pion_correlator": [3, 1, 0.5, 1]}' >c.json
cat >t.json <<'END'
{"dims": [4, 4, 4, 8], "ranks": 1, "tolerance": 1e-10, "modes": {"count": 8}, "machine": {"cpu": "abacus"},
 "rows": [{"solver": "cg", "mass": 0.1, "rhs": 1, "inner": "none", "backend": "cpu_simd", "packing": "none", "converged": true, "iterations": 10, "seconds_per_rhs": 2},
          {"solver": "cg", "mass": 0.01, "rhs": 1, "inner": "none", "backend": "cpu_simd", "packing": "none", "converged": true, "iterations": 20, "seconds_per_rhs": 9},
          {"solver": "block", "mass": 0.1, "rhs": 2, "inner": "none", "backend": "cpu_simd", "packing": "none", "converged": false, "seconds_per_rhs": 1}],
 "time_to_solution": [{"solver": "deflated", "mass": 0.1, "rhs": 2, "inner": "half", "backend": "cpu_simd", "packing": "none", "n_sources": 16, "seconds_per_rhs": 3}]}
END
# One more of that lattice, machine and number of ranks, without modes; and another code's milliseconds per iteration.
cat >more.json <<'END'
{"dims": [4, 4, 4, 8], "ranks": 1, "tolerance": 1e-10, "machine": {"cpu": "abacus"},
 "rows": [{"solver": "cg", "mass": 0.1, "rhs": 2, "inner": "none", "backend": "cpu_simd", "packing": "none", "converged": true, "iterations": 99, "seconds_per_rhs": 1},
          {"solver": "cg", "mass": 0.02, "rhs": 2, "inner": "none", "backend": "cpu_simd", "packing": "none", "converged": true, "iterations": 40, "seconds_per_rhs": 1}]}
END
cat >other.csv <<'END'
label,device,gpus,action,inner,rhs,ms_per_iteration_rhs,dims,date,source
other,abacus,1,naive,none,1,1000,4x4x4x16,2024-12,here
other,abacus,1,naive,half,1,1000,4x4x4x16,2024-12,here
other,abacus,3,naive,none,1,1000,4x4x4x16,2024-12,here
END
for call in "plot_dirac.py d.csv d.png" "plot_gemm.py g.csv g.png" "plot_gemm_sweep.py g.csv s.png" "plot_validate.py v.json" "plot_correlator.py c.json -o c.png" \
  "plot_time_to_solution.py t.json -o t.png"; do
  set -- $call
  PYTHONPATH=$work/none "$source_dir/scripts/$1" "${@:2}" >out 2>err && complain "$1 goes on without matplotlib"
  [ "$(wc -l <err)" = 1 ] && grep -q 'needs matplotlib; install it' err || complain "$1 without matplotlib: $(tail -1 err)"
done
# With matplotlib, where it is, each makes its pictures.
if python_with matplotlib; then
  on 1 validate --lattice "$source_dir/inputs/beta5.7_4x4x4x8.lime" --backend cpu_simd --precision half --quiet --json v.json ||
    complain "validate: exit $?"
  HOST_ONLY=1 REPEAT=1 SMALL=16:32:16 "$source_dir/scripts/sweep_gemm.sh" "$minidirac" sweep >out 2>err ||
    complain "sweep_gemm.sh: $(tail -1 err)"
  for call in "plot_dirac.py d.csv d.png" "plot_gemm.py g.csv g.png" "plot_gemm_sweep.py sweep/dense-sweep.csv s.png" \
    "plot_validate.py v.json -o v" "plot_correlator.py c.json -o c.png" "plot_time_to_solution.py t.json t.json -o t.png"; do
    set -- $call
    "$source_dir/scripts/$1" "${@:2}" >out 2>err || complain "$call: $(tail -1 err)"
  done
  # Seconds by our iterations, in the panel of that device and rank count alone, from rows with as many right-hand sides
  # where there are any; more.json has no panel of its own.
  sed 's/"ranks": 1/"ranks": 2/' t.json >t2.json
  "$source_dir/scripts/plot_time_to_solution.py" t.json t2.json more.json --reference other.csv -o o.png >out 2>err ||
    complain "plot_time_to_solution.py --reference: $(tail -1 err)"
  for line in "0.1 10 1 5" "0.02 40 2 20" "0.01 20 1 10"; do
    printf 'other cg, double, 1 rhs, 1 GPU, mass %s: 1000 ms x 0.5 x %s iterations (of %s rhs) = %s s\n' $line
  done | diff - out || complain "seconds of another code"
  for bad in "s/,1000,/,fast,/ has a bad number" "s/,naive,/,,/ has no action"; do
    sed "${bad%% *}" other.csv >bad.csv
    "$source_dir/scripts/plot_time_to_solution.py" t.json --reference bad.csv -o none.png >out 2>err &&
      complain "plot_time_to_solution.py takes a reference that ${bad#* }"
    [ "$(wc -l <err)" = 1 ] && grep -q "bad.csv, line 2 ${bad#* }" err || complain "bad.csv: $(tail -1 err)"
  done
  # Reals of a link and a preconditioner make curves of their own.
  python3 - <<'P'
import json
report = json.load(open("t.json"))
row = {**report["rows"][0], "rhs": 2, "reconstruct": "18", "precondition": "none"}
report["rows"] = [row, {**row, "reconstruct": "12"}] + [{**row, "solver": "fcg", **way} for way in (
    {}, {"precondition": "chebyshev", "degree": 4}, {"precondition": "chebyshev", "degree": 8})]
json.dump(report, open("ways.json", "w"))
P
  "$source_dir/scripts/plot_time_to_solution.py" ways.json -o ways.svg >out 2>err || complain "plot_time_to_solution.py ways.json: $(tail -1 err)"
  for curve in "cg: cpu_simd" "cg: cpu_simd, 12 reals" "fcg: cpu_simd" "fcg chebyshev 4: cpu_simd" "fcg chebyshev 8: cpu_simd"; do
    [ "$(grep -c "<!-- $curve, double, 2 rhs -->" ways.svg)" = 1 ] || complain "ways.svg must have one curve '$curve'"
  done
  # A solve that did not converge is drawn, named in the picture and on stderr.
  sed 's/"mass"/"converged": false, "relative_residual": 0.5, "tolerance": 1e-10, "mass"/' c.json >cut.json
  "$source_dir/scripts/plot_correlator.py" c.json cut.json -o cut.svg >out 2>err || complain "plot_correlator.py cut.json: $(tail -1 err)"
  [ "$(wc -l <err)" = 1 ] && grep -q '^plot_correlator.py: warning: .* cut.json should be at most 1e-10, got 0.5, not converged' err ||
    complain "cut.json: $(tail -1 err)"
  [ "$(grep -c '<!-- .*NOT CONVERGED' cut.svg)" = 1 ] || complain "the picture does not name the solve that did not converge"
  # Bad input is one line and exit code 2.
  echo '[]' >list.json
  sed 's/"mass": 0.1, //' c.json >massless.json
  sed 's/0.1/"0.1"/' c.json >text.json
  sed 's/0.5/null/' c.json >null.json
  sed 's/0.5/"half"/' c.json >word.json
  sed 's/"reconstruct"/"else"/' v.json >else.json
  head -c -9 g.csv >cut.csv
  sed '$s/naive//' g.csv >nameless.csv
  sed '$s/1$//' g.csv >unshared.csv
  sed 's/"tolerance"/"else"/' t.json >intolerant.json
  sed 's/"tolerance": 1e-10/"tolerance": null/' t.json >null_tolerance.json
  sed 's/"ranks": 1,//' t.json >rankless.json
  sed 's/"mass": 0.01/"mass": null/' t.json >null_mass.json
  printf 'copy 0 5 1 8 a\nhop 2 5 2 8 b\n' >trace.txt
  cp g.csv g.svg
  printf 'part,work,precision,roofline_fraction,gflops\nhop,,double,1,1\ngemm,,double,,1\n' >suite.csv
  for bad in "plot_correlator.py list.json -o none.png" "plot_correlator.py massless.json -o none.png" \
    "plot_correlator.py text.json -o none.png" "plot_correlator.py null.json -o none.png" "plot_correlator.py word.json -o none.png" \
    "plot_correlator.py c.json -o absent/o.png" "plot_correlator.py c.json -o a.json" "plot_validate.py list.json" \
    "plot_validate.py c.json" "plot_validate.py else.json" "plot_validate.py v.json -o absent/v" "plot_dirac.py suite.csv none.png" \
    "plot_dirac.py g.csv none.png" "plot_dirac.py list.json none.png" "plot_dirac.py d.csv absent/d.png" "plot_gemm.py d.csv none.png" \
    "plot_gemm.py g.csv a.json" "plot_gemm.py unshared.csv none.png --share --log" "plot_gemm.py nameless.csv none.png" \
    "plot_gemm.py cut.csv none.png" "plot_gemm.py g.svg g.svg" "plot_gemm_sweep.py g.csv none.png --report list.json" \
    "plot_gemm_sweep.py g.csv none.png --report cut.csv" "plot_timeline.py trace.txt -o absent/t.png" "plot_timeline.py g.csv -o none.png" \
    "plot_timeline.py absent.txt -o none.png" "plot_gemm_sweep.py list.json none.png" "plot_time_to_solution.py list.json -o none.png" \
    "plot_time_to_solution.py intolerant.json -o none.png" "plot_time_to_solution.py null_tolerance.json -o none.png" \
    "plot_time_to_solution.py rankless.json -o none.png" "plot_time_to_solution.py null_mass.json -o none.png"; do
    set -- $bad
    "$source_dir/scripts/$1" "${@:2}" >out 2>err
    [ $? = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -q "^$1: error: " err || complain "$bad: $(tail -1 err)"
  done
  cmp g.csv g.svg || complain "plot_gemm.py wrote over its input"
  "$source_dir/scripts/plot_timeline.py" trace.txt -o trace.png 2>err && [ -s trace.png ] || complain "plot_timeline.py: $(tail -1 err)"
  for picture in d.png g.png o.png s.png sweep/dense-sweep.png v-errors.png v-solver.png c.png t.png; do [ -s $picture ] || complain "no $picture"; done
fi
"$source_dir/scripts/plot_time_to_solution.py" c.json -o none.png >out 2>err && complain "plot_time_to_solution.py draws a report of solve"
# Weak scaling: as many blocks as ranks, which keep their names in the table; what does not run is told in one line.
export OMP_NUM_THREADS=1
weak() { "$source_dir/scripts/weak_scaling.py" "$minidirac" --local 4x4x4x6 "$@" >out 2>err || complain "weak_scaling.py $*: $(tail -1 err)"; }
weak --ranks 1,2 --keep weak -- --backends cpu_simd --precisions double,single --reconstructs 18 --rhs 1 --repetitions 1
grep -q '^bench dirac: backend=cpu_simd .* action=naive$' out || complain "weak_scaling.py: $(head -1 out)"
for precision in double single; do
  grep -qE "^precision=$precision +1 +4x4x4x6 +[0-9.e-]+ +[0-9.]+ +1.000$" out || complain "weak_scaling.py, 1 rank: $(cat out)"
  grep -qE "^precision=$precision +2 +4x4x4x12 +[0-9.e-]+ +[0-9.]+ +[0-9.]+$" out || complain "weak_scaling.py, 2 ranks: $(cat out)"
done
[ "$(key ranks weak/weak-2.json) $(key grid weak/weak-2.json)" = "2 [1, 1, 1, 2]" ] || complain "weak-2.json: $(grep grid weak/weak-2.json)"
python3 - out <<'P' || complain "weak_scaling.py, 2 ranks against their reports: $(cat out)"
import json, sys
one, two = ({row["precision"]: row for row in json.load(open(f"weak/weak-{n}.json"))["rows"]} for n in (1, 2))
lines = {line.split()[0]: line.split()[3:] for line in open(sys.argv[1]) if line.split()[1:2] == ["2"]}
for precision in ("double", "single"):
    first, here = one[precision]["seconds_median"], two[precision]["seconds_median"]
    want = [f"{here:.3e}", f"{two[precision]['gflops'] / 2:.2f}", f"{first / here:.3f}"]
    assert lines[f"precision={precision}"] == want, (lines, want)
P
weak --ranks 2 --kind solver -- --operators cpu_simd --inner none --mass 0.5 --tol 1e-6 --repetitions 1
grep -qE "^row +2 +4x4x4x12 +[0-9.e-]+ +[0-9.]+ +1.000$" out || complain "weak_scaling.py, solver: $(cat out)"
for bad in "--local 4x4x4" "--local 4x4x4x4 --ranks 0" "--local 4x4x4x4 --ranks 1 -- --rhs none"; do
  "$source_dir/scripts/weak_scaling.py" "$minidirac" --ranks 1 $bad >out 2>err
  [ $? = 2 ] && [ "$(tail -1 err | grep -c '^weak_scaling.py: error: ')" = 1 ] || complain "weak_scaling.py $bad: $(tail -1 err)"
done
"$source_dir/scripts/table_gemm.py" g.csv | grep -q '| naive | single |' || complain "table_gemm.py"
# A gain is over the line before of the same precision.
{ cat g.csv && printf '%s,4,4,4,%s\n' k0,double 8,1 k1,single 2.5,0.25 k2,double 12,0.5 cublas,single 5,1; } >gains.csv
"$source_dir/scripts/table_gemm.py" gains.csv | sed 1,2d | cut -d'|' -f2,3,5,6 | diff - <(printf ' %s | %s | %s | %s \n' \
  naive single 1.00 '' k0 double 1.00 '' k1 single 0.25 2.50 k2 double 0.50 1.50 cublas single 1.00 '') || complain "table_gemm.py: gains"
"$source_dir/scripts/sweep_gemm.sh" --help | grep -q HOST_ONLY || complain "sweep_gemm.sh --help does not name HOST_ONLY"
# Bad input is one line and exit code 2.
: >empty.csv
python3 - <<'P'
import json
row = {"backend": "cuda", "packing": "none", "precision": "double", "reconstruct": 18, "rhs": 1, "dims": [8, 8, 8, 8],
       "seconds_median": 2e-5}
split = {**row, "ranks": 2, "exchange_seconds": 1e-5, "interior_seconds": 1e-5, "boundary_seconds": 2e-6, "halo_bytes": 98304}
several, large = [1, 1, 1, 2], {"dims": [16] * 4, "halo_bytes": 786432, "exchange_seconds": 9e-6}
for name, grid, rows in (("one", [1, 1, 1, 1], [{**row, "ranks": 1}]), ("two", several, [split]),
                         ("flat", several, [split, {**split, **large}]), ("alone", [1, 1, 1, 1], [split]),
                         ("untimed", several, [{**split, "seconds_median": 0}]), ("still", several, [{**split, "halo_bytes": 0}]),
                         ("at-once", several, [{**split, "exchange_seconds": 0}]), ("flat-dims", several, [{**split, "dims": [8] * 3}]),
                         ("null", several, [{**split, "seconds_median": None}]), ("word", several, [{**split, "exchange_seconds": "a"}])):
    json.dump({"command": "bench dirac", "grid": grid, "rows": rows}, open(f"{name}.json", "w"))
solves = [{**row, "ranks": 1, "inner": "none", "solver": solver, "precondition": before, "ms_per_iteration_loop": ms}
          for solver, before, ms in (("cg", "none", 1), ("block", "none", 9), ("cg", "modes", 9))]
for name, rows in ("cg", solves[:1]), ("ways", solves):
    json.dump({"command": "bench solver", "grid": [1] * 4, "rows": rows}, open(f"{name}.json", "w"))
P
"$source_dir/scripts/model_scaling.py" one.json two.json --network 25 >out 2>err && grep -q '^| hop cuda none double 18 1 |' out ||
  complain "model_scaling.py: $(tail -1 err)"
# Solves by other ways than CG change nothing.
for solves in cg ways; do
  "$source_dir/scripts/model_scaling.py" one.json two.json $solves.json >$solves.out 2>err && grep -q '^| CG cuda none double 18 1 |' $solves.out ||
    complain "model_scaling.py $solves.json: $(tail -1 err)"
done
cmp cg.out ways.out || complain "model_scaling.py takes other ways to solve for CG"
# Exchanges that take no longer with more bytes give no bandwidth.
"$source_dir/scripts/model_scaling.py" one.json flat.json >out 2>err && grep -q '^link: .* no more for more bytes in an exchange$' out ||
  complain "model_scaling.py flat.json: $(tail -1 err)"
# Nor a solve whose vectors no report of one rank times.
python3 -c 'import json; r = json.load(open("cg.json")); r["rows"][0].update(ranks=2, grid=[1, 1, 1, 2]); r["grid"] = [1, 1, 1, 2]; json.dump(r, open("cg2.json", "w"))'
"$source_dir/scripts/model_scaling.py" one.json two.json cg2.json >out 2>err && grep -q '^left out: CG cuda none double 18 1' out && ! grep -q '^| CG' out ||
  complain "model_scaling.py without a solve of one rank: $(tail -2 out err)"
printf '\377\376' >noise
echo '{"command": "bench suite"}' >suite.json
python3 - <<'P'
import csv
rows = list(csv.DictReader(open("g.csv")))
rows[0]["m"] = "nan"
writer = csv.DictWriter(open("nan.csv", "w"), rows[0])
writer.writeheader()
writer.writerows(rows)
P
bash "$source_dir/scripts/example_study.sh" >out 2>&1
[ $? = 2 ] && [ -s out ] && bash "$source_dir/scripts/example_study.sh" --help >out && [[ $(tail -1 out) == usage:* ]] || complain "example_study.sh without arguments: $(tail -1 out)"
for bad in "table_gemm.py none.csv" \
  "table_gemm.py ." "table_gemm.py empty.csv" "table_gemm.py d.csv" \
  "model_scaling.py one.json alone.json" "model_scaling.py one.json untimed.json" "model_scaling.py one.json still.json" \
  "model_scaling.py one.json at-once.json" "model_scaling.py one.json flat-dims.json" "model_scaling.py one.json null.json" \
  "model_scaling.py one.json word.json" \
  "model_scaling.py one.json" "model_scaling.py none.json" "model_scaling.py c.json" \
  "model_scaling.py one.json two.json --network 0" "model_scaling.py one.json two.json --network -5" \
  "model_scaling.py one.json two.json --network nan" "model_scaling.py one.json two.json --network-latency -1" \
  "model_scaling.py one.json two.json --node 0" "performance.py --add" "performance.py --add x suite.json noise" \
  "ratios_gemm.py ./no-such-program" "ratios_gemm.py x --ranks a" "ratios_gemm.py x --ranks 2,0" "plot_packings.py" \
  "table_gemm.py nan.csv" "weak_scaling.py x --local 4x4x4x4 --ranks a" "weak_scaling.py x --local 4x4x4x4 --ranks 1 --launcher '"; do
  set -- $bad
  "$source_dir/scripts/$1" "${@:2}" >out 2>err
  [ $? = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -q "^$1: error: " err || complain "$bad: $(tail -1 err)"
done
echo '[]' | "$source_dir/scripts/plot_packings.py" tiles >out 2>err
[ $? = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'give what print_packing_maps wrote' err || complain "plot_packings.py without tiles: $(tail -1 err)"
finish
