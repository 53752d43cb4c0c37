#!/usr/bin/env bash
# bench solver: a row for each solve with a true residual, reasons for what is missing, exit codes.
. "$(dirname "$0")/common.sh"
small="--dims 4x4x4x8 --mass 0.3 --repetitions 1 --operators cpu_simd"
for ranks in 1 2; do
  on $ranks bench solver $small --solvers cg,block,multishift,refined,separate --inner none,single --rhs 1,2 \
    --shifts 0,0.5 --tol 1e-10 --csv "$work/$ranks.csv" --json "$work/$ranks.json" >"$work/out" || complain "$ranks ranks: exit $?"
  # 1 right-hand side: cg, refined and separate by two precisions, multishift; 2: block more.
  [ "$(wc -l <"$work/$ranks.csv")" = 16 ] || complain "$ranks ranks: $(wc -l <"$work/$ranks.csv") lines"
  grep -q '"converged":.*false' "$work/$ranks.json" && complain "a line that did not converge"
  for key in ms_per_iteration_rhs ms_per_iteration_loop operator_share speedup relative_residual reason; do
    grep -q "\"$key\"" "$work/$ranks.json" || complain "no $key"
  done
  grep -q 'not timed: block CG takes 2 to 64' "$work/out" || complain "no reason on the terminal"
done
[ "$(grep -E '"(iterations|relative_residual)"' "$work/1.json")" = "$(grep -E '"(iterations|relative_residual)"' "$work/2.json")" ] ||
  complain "other numbers on 2 ranks"
refuses 1 'every line must reach a true residual of 1e-12, which 1 missed' 1 bench solver $small --inner none --max-iter 3
refuses 2 'one of the two' 1 bench solver
refuses 2 '--solvers must be one of cg.block' 1 bench solver $small --solvers cg,gmres
refuses 2 '--inner must be one of none' 1 bench solver $small --inner double
refuses 2 '--operators must be one of 18.12.8' 1 bench solver --dims 4x4x4x4 --operators cpu_simd:none:17
refuses 2 '--mass must be a list of finite numbers' 2 bench solver --dims 4x4x4x4 --mass 0.1,x
finish
