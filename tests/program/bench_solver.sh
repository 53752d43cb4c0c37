#!/usr/bin/env bash
# bench solver: a row for each solve with a true residual, reasons for what is missing, exit codes.
. "$(dirname "$0")/common.sh"
small="--dims 4x4x4x8 --mass 0.3 --repetitions 1 --operators cpu_simd"
for ranks in 1 2; do
  on $ranks bench solver $small --solvers cg,block,multishift,refined,separate --inner none,single --rhs 1,2 \
    --shifts 0,0.5 --tol 1e-10 --csv "$work/$ranks.csv" --json "$work/$ranks.json" >"$work/out" || complain "$ranks ranks: exit $?"
  # 1 right-hand side: cg, refined and separate by two precisions, multishift; 2: block more, by two.
  [ "$(wc -l <"$work/$ranks.csv")" = 17 ] || complain "$ranks ranks: $(wc -l <"$work/$ranks.csv") lines"
  grep -q '"converged":.*false' "$work/$ranks.json" && complain "a line that did not converge"
  for key in ms_per_iteration_rhs ms_per_iteration_loop operator_share speedup relative_residual reason; do
    grep -q "\"$key\"" "$work/$ranks.json" || complain "no $key"
  done
  grep -q 'not timed: block CG takes 2 to 64' "$work/out" || complain "no reason on the terminal"
done
on 1 bench solver $small --solvers multishift --inner auto --tol 1e-10 --quiet || complain "multishift --inner auto: exit $?"
# A table has the columns of all its rows, and words with commas in quotes.
on 1 bench solver $small --solvers cg,fcg --inner none,auto --csv "$work/auto.csv" --quiet || complain "--inner none,auto: exit $?"
if command -v python3 >/dev/null; then
  python3 - "$work/auto.csv" <<'END' || complain "the table of --inner none,auto: $(cat "$work/auto.csv")"
import csv, sys
head, *rows = csv.reader(open(sys.argv[1]))
assert len(rows) == 4 and all(len(row) == len(head) for row in rows)
assert [bool(row[head.index("inner_reason")]) for row in rows] == [False, True, False, True], rows
assert "," in rows[3][head.index("inner_reason")], rows
END
fi
# Iterations of several shifts together are none of a solve that ran out of them.
refuses 1 'which 1 missed; raise --tol$' 1 bench solver --dims 4x4x4x4 --mass 0.01 --solvers separate --shifts 0,0.0001,0.001,0.01 \
  --inner none --operators cpu_simd --tol 1e-15 --max-iter 2000 --repetitions 1 --quiet
# The degree of a polynomial is told where one was taken.
on 1 bench solver $small --solvers cg,fcg --inner none --precondition chebyshev --degree 3 --json "$work/degree.json" --quiet || complain "chebyshev: exit $?"
[ "$(grep -c '"degree":[[:space:]]*3,' "$work/degree.json") $(grep -c '"degree"' "$work/degree.json")" = "1 1" ] || complain "no degree in one row alone"
[ "$(grep -E '"(iterations|relative_residual)"' "$work/1.json")" = "$(grep -E '"(iterations|relative_residual)"' "$work/2.json")" ] ||
  complain "other numbers on 2 ranks"
# GFLOP/s by MILC's count, of the whole lattice; of shifts there is none.
on 1 bench solver --dims 8x8x8x8 --action hisq --mass 0.5 --rhs 1,12 --inner half --operators cpu_simd --tol 1e-8 --repetitions 1 \
  --json "$work/milc.json" >"$work/out" || complain "hisq: exit $?"
if command -v python3 >/dev/null; then
  python3 - "$work/1.json" "$work/milc.json" <<'END' || complain "gflops_milc: $(grep gflops_milc "$work"/*.json)"
import json, sys
for name, flops in zip(sys.argv[1:], (606 * 4**3 * 8, 1187 * 8**4)):
    for row in json.load(open(name))["rows"]:
        done = None if row["solver"] in ("multishift", "refined", "separate") else flops * row["iterations"] * row["rhs"]
        assert row["gflops_milc"] == done or abs(1e9 * row["gflops_milc"] * row["seconds_median"] / done - 1) < 1e-9, row
        assert row["sensors"]["samples"] > 0
END
fi
grep -qE '^0.5 +12 .* [0-9.]+ +[0-9.]+$' "$work/out" || complain "no GFLOP/s by MILC's count: $(tail -1 "$work/out")"
# Modes are found first, in less than the whole time; deflated solves take fewer iterations, and the
# time of the search is shared out.
on 1 bench solver --lattice "$source_dir/inputs/beta6.0_8x8x8x8.h5" --mass 0.002 --modes 32 --modes-tol 1e-6 --rhs 2 --inner none \
  --operators cpu_simd --tol 1e-8 --repetitions 1 --n-sources 2,3 --json "$work/modes.json" >"$work/out" || complain "--modes: exit $?"
if command -v python3 >/dev/null; then
  python3 - "$work/modes.json" <<'END' || complain "the report of --modes"
import json, sys
r = json.load(open(sys.argv[1]))
plain, deflated = r["rows"]
assert [plain["solver"], deflated["solver"]] == ["cg", "deflated"]
assert 2 * deflated["iterations"] < plain["iterations"], (deflated["iterations"], plain["iterations"])
assert len(r["modes"]["eigenvalues"]) == r["modes"]["count"] == 32 and 0 < r["modes"]["seconds"] < r["seconds"]
times = {(t["solver"], t["n_sources"]): t for t in r["time_to_solution"]}
setup, solve = r["modes"]["seconds"], deflated["seconds_median"]
for n, solves in (2, 1), (3, 2): # two at once
    assert abs(times["deflated", n]["seconds_per_rhs"] - (setup + solves * solve) / n) < 1e-9
    assert abs(times["cg", n]["seconds_per_rhs"] - solves * plain["seconds_median"] / n) < 1e-9
even, = r["break_even"]
# Iterations that modes spare, by the spectrum, within a tenth of what they do spare.
foreseen = even["predicted_iteration_ratio"]
assert 0.9 < (1 - foreseen) / (1 - deflated["iterations"] / plain["iterations"]) < 1.1, even
with_s = foreseen * plain["seconds_median"] + even["predicted_projections"] * even["projection_seconds"]
assert abs(even["predicted_seconds"] / with_s - 1) < 1e-9 and even["projection_seconds"] > 0
for name, s in ("predicted", with_s), ("measured", solve):
    gained = (plain["seconds_median"] - s) / 2
    assert even[name] is None if gained <= 0 else abs(even[name] * gained / setup - 1) < 1e-9, even
END
fi
grep -q 'break-even at .* sources by the spectrum, .* measured' "$work/out" || complain "no break-even number"
# A solve that breaks down has no row, and is no success.
on 1 bench solver --dims 4x4x4x4 --action asqtad --u0 0.05 --mass 100 --tol 1e-6 --inner none,half --operators cpu_simd --max-iter 5000 \
  --repetitions 1 --json "$work/broken.json" >"$work/out" 2>&1
[ $? = 1 ] && [ "$(key failed "$work/broken.json")" = true ] || complain "a solve that broke down: $(tail -3 "$work/out")"
! command -v python3 >/dev/null || "$source_dir/scripts/report.py" "$work/broken.json" -o "$work/broken.html" >/dev/null 2>&1 || complain "report.py: exit $?"
! command -v python3 >/dev/null || grep -q '1 of 2 solves missed' "$work/broken.html" || complain "report.py passes a solve that broke down"
refuses 2 'deflated solves need --modes N' 1 bench solver $small --solvers deflated --inner none
refuses 1 'every line must reach a true residual of 1e-12, which 1 missed' 1 bench solver $small --inner none --max-iter 3
refuses 2 'one of the two' 1 bench solver
refuses 2 '--sweeps has no effect without --dims' 1 bench solver --lattice "$source_dir/inputs/beta5.7_4x4x4x8.lime" --sweeps 3
refuses 2 '--beta has no effect without --sweeps N' 1 bench solver --dims 4x4x4x4 --beta 5
refuses 2 '--n-sources has no effect without --modes N' 1 bench solver $small --n-sources 3
refuses 2 '--shifts has no effect without --solvers multishift' 1 bench solver $small --solvers cg,gcr --shifts 0,1
refuses 2 '--precondition has no effect without --solvers fcg or gcr' 1 bench solver $small --precondition chebyshev
refuses 2 '--solvers must be one of cg.block' 1 bench solver $small --solvers cg,gmres
refuses 2 '--inner must be one of none' 1 bench solver $small --inner double
refuses 2 "--operators must have a packing behind a colon, got 'cpu_simd::12'; auto leaves it open" 1 bench solver --dims 4x4x4x4 --operators cpu_simd::12
refuses 2 '--operators must be one of 18.12.8' 1 bench solver --dims 4x4x4x4 --operators cpu_simd:none:17
refuses 2 '--mass must be a list of finite numbers' 2 bench solver --dims 4x4x4x4 --mass 0.1,x
finish
