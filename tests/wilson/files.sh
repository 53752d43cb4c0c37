#!/usr/bin/env bash
# Wilson and domain-wall quarks in files: solutions to begin from, states to go on from, modes to deflate with, studies;
# and benchmarks, which check before they time.
. "$(dirname "$0")/common.sh"

# kappa NAME ACTION...: report NAME.json has kappa beside its mass where that is one of Wilson quarks.
kappa() {
  local mass
  mass=$(value mass "$1")
  [ "$2" = wilson ] || {
    [ -z "$(value kappa "$1")" ] || complain "$*: kappa $(value kappa "$1")"
    return
  }
  close "[$(value kappa "$1")]" "[$(awk -v m="$mass" 'BEGIN { printf "%.15g", 0.5 / (m + 4) }')]" 1e-14 || complain "$*: kappa $(value kappa "$1")"
}

# Files: a solution to begin from, a state to go on from, shifts of S S^dag.
solved out 2 --action wilson --mass 0.1 --output "$work/out.h5"
solved whole 1 --action wilson --mass 0.12
for way in "--inner single" "--solver bicgstab" "--solver block"; do
  # shellcheck disable=SC2086
  solved begun 1 --action wilson --mass 0.12 --guess "$work/out.h5" $way
  [ "$(value iterations begun)" -lt "$(value iterations whole)" ] || complain "a guess spares no iterations, $way"
  close "$(value pion_correlator begun)" "$(value pion_correlator whole)" 1e-8 || complain "$way: a guess changes the solution"
done
on 2 convert "$work/out.h5" "$work/copy.h5" --quiet || complain "a copy of a solution: exit $?"
for format in scidac milc; do
  refuses 2 "$format files hold colour vectors, got 24 reals a site; use hdf5" 1 convert "$work/out.h5" "$work/copy.$format"
done
if python_with h5py numpy; then
  python3 - "$work/out.h5" "$work/copy.h5" <<'PYTHON' || complain "the copy of a solution differs"
import h5py, sys
one, other = (h5py.File(name)["/propagator/solution"] for name in sys.argv[1:])
assert (one[:] == other[:]).all() and one.attrs["axes"] == other.attrs["axes"]
PYTHON
  python3 - "$work/out.h5" "$(value pion_correlator out)" <<'PYTHON' || complain "the solution on file"
import h5py, json, numpy, sys
x = h5py.File(sys.argv[1])["/propagator/solution"]
assert x.shape == (12, 8, 4, 4, 4, 4, 3) and x.attrs["axes"] == b"rhs,t,z,y,x,spin,colour", (x.shape, x.attrs["axes"])
pion = (abs(x[:]) ** 2).sum(axis=(0, 2, 3, 4, 5, 6))
assert numpy.allclose(pion, json.loads(sys.argv[2]), rtol=1e-13)
PYTHON
fi
for way in wilson "mobius --Ls 2 --inner single"; do # one after the other, where walls are
  # shellcheck disable=SC2086
  {
    solved all 1 --action $way --mass 0.1 --source point:1,0,2,3
    on 2 solve --lattice "$lattice" --action $way --mass 0.1 --source point:1,0,2,3 --max-iter 20 --quiet \
      --checkpoint "$work/state" --checkpoint-every 7 2>/dev/null && complain "$way: converged in 20 iterations"
    solved rest 1 --action $way --mass 0.1 --source point:1,0,2,3 --checkpoint "$work/state" --resume
  }
  for what in residual_history pion_correlator residual_mass; do
    [ "$(value $what rest)" = "$(value $what all)" ] || complain "$way: a resumed $what differs"
  done
done
on 1 solve --lattice "$lattice" --action mobius --Ls 2 --mass 0.1 --max-iter 3 --quiet --progress always 2>"$work/err"
grep -q 'solve: right-hand side 1 of 12, .* iteration 1' "$work/err" || complain "how far a solve in parts is: $(cat "$work/err")"
solved shifts 2 --action wilson --mass 0.1 --solver multishift --shifts 0,0.5 --output "$work/shift.h5"
[ "$(grep -c '"equation":.*"(S S^dag + shift) x = b on even sites"' "$work/shifts.json")" = 2 ] || complain "what shifts solve: $(value equation shifts)"
refuses 2 'must solve M x = b, .*shift-1.h5 has shift 0.5 and solves .S S.dag . shift. x = b .*; give a solution without --shifts' 1 \
  solve --lattice "$lattice" --action wilson --mass 0.1 --guess "$work/shift-1.h5"
on 1 convert "$work/shift-1.h5" "$work/shifted.h5" --quiet || complain "a copy of a shift's solution: exit $?"
for name in shift-1 shifted; do
  said=$(on 1 info "$work/$name.h5")
  [[ $said == *'shift: 0.5'* && $said == *'equation: (S S^dag + shift) x = b'* ]] || complain "info of $name: $said"
done
solved refined 1 --action wilson --mass 0.1 --solver multishift --shifts 0,0.5 --precision single --refine
[ "$(grep -c '"relative_residual"' "$work/refined.json")" = 3 ] || complain "the rows of shifts"

# Modes of S S^dag, which belong to a mass: on file and back, and to deflate with.
for way in "wilson --mass -0.7" "mobius --Ls 2 --mass 0.1"; do
  # shellcheck disable=SC2086
  {
    on 1 eigen "$lattice" --modes 3 --action $way --store single --output "$work/modes.h5" --force --quiet \
      --json "$work/modes.json" || complain "eigen $way: exit $?"
    [ "$(value converged modes) $(value operator modes)" = 'true "S S^dag"' ] || complain "eigen $way: the report"
    kappa modes "${way%% *}"
    solved plain 1 --action $way --tol 1e-9
    solved deflated 1 --action $way --tol 1e-9 --deflate "$work/modes.h5"
  }
  [ "$(value iterations deflated)" -lt "$(value iterations plain)" ] || complain "$way: modes spare no iterations"
  close "$(value pion_correlator deflated)" "$(value pion_correlator plain)" 1e-7 || complain "$way: modes change the solution"
done
refuses 2 'scidac files hold colour vectors, got [0-9]* reals a site; use hdf5' 1 convert "$work/modes.h5" "$work/modes.scidac"
[ "$(grep -c '"chirality"' "$work/modes.json")" = 0 ] || complain "walls have no Hermitian gamma_5 S"
on 1 eigen "$lattice" --modes 3 --action wilson --mass -0.7 --block 2 --quiet --json "$work/signs.json" || complain "eigen --block: exit $?"
python_with json && { python3 - "$work/signs.json" <<'PYTHON' || complain "eigenvalues of gamma_5 S"
import json, sys
r = json.load(open(sys.argv[1]))
for value, sign in zip(r["eigenvalues"], r["gamma5_modes"], strict=True):
    assert abs(sign["eigenvalue"] ** 2 - value) < 1e-9 and sign["residual"] < 1e-6 and sign["converged"] and 0 < abs(sign["chirality"]) <= 1, (value, sign)
PYTHON
}
# Free quarks: twelve modes or more of each eigenvalue, of which three are a part.
on 1 generate --dims 4x4x4x4 --start cold --output "$work/cold.h5" --quiet || complain "generate: exit $?"
on 1 eigen "$work/cold.h5" --modes 3 --action wilson --mass 0.1 --quiet --json "$work/part.json" 2>"$work/err" || complain "eigen, a part: exit $?"
grep -q 'warning: 3 rows of gamma_5 S belong to an eigenvalue of which --modes has only a part; raise --modes' "$work/err" ||
  complain "eigen, a part: $(cat "$work/err")"
[ "$(grep -c '"converged":.*false' "$work/part.json")" = 3 ] || complain "eigen, a part: rows that are no eigenvalues have converged"
refuses 2 "must have the action of this run, 'mobius.*mass 0.2'" 1 solve --lattice "$lattice" --action mobius --Ls 2 \
  --mass 0.2 --deflate "$work/modes.h5"
refuses 2 "must have the action of this run, 'wilson, mass 0.1', got 'mobius" 1 solve --lattice "$lattice" --action wilson \
  --mass 0.1 --deflate "$work/modes.h5"

# A study has the numbers of solve; benchmarks check before they time.
on 2 measure --lattices "$lattice" --masses 0.1,0.2 --actions wilson,mobius --Ls 4 --tol 1e-11 --rhs 5 \
  --output "$work/study.h5" --quiet --json "$work/study.json" || complain "measure: exit $?"
kappa study wilson
[ "$(grep -c '"kappa"' "$work/study.json")" = 2 ] || complain "measure: $(grep -c '"kappa"' "$work/study.json") rows with kappa"
solved exact 1 --action mobius --mass 0.1 --tol 1e-11 --Ls 4
if python_with h5py; then
  close "[$(python3 -c "
import h5py
print(','.join('%.16e' % c for c in h5py.File('$work/study.h5')['study/pion'][0, 1, 0, 0, 0]))")]" \
    "$(value pion_correlator exact)" 1e-9 || complain "the study's correlator"
fi
on 2 measure --lattices "$lattice" --masses 0.1,0.2 --actions wilson,mobius --Ls 4 --tol 1e-11 --rhs 5 --resume \
  --output "$work/study.h5" --quiet --json "$work/resumed.json" || complain "resumed study: exit $?"
[ "$(key residual_mass "$work/study.json")" = "$(key residual_mass "$work/resumed.json")" ] || complain "resumed study: another m_res"
close "[$(key residual_mass "$work/study.json")]" "[$(value residual_mass exact)]" 1e-8 || complain "the study's m_res"
for way in "" "--deflate $work/modes.h5"; do # of mobius, Ls 2, mass 0.1
  # shellcheck disable=SC2086
  on 1 measure --lattices "$lattice" --masses 0.1 --actions mobius --Ls 2 --tol 1e-11 --output "$work/one${way:0:3}.h5" \
    --quiet --json "$work/one${way:0:3}.json" $way || complain "measure $way: exit $?"
done
close "[$(key residual_mass "$work/one--d.json")]" "[$(key residual_mass "$work/one.json")]" 1e-8 || complain "modes change a study"
refuses 2 'modes of action mobius belong to a mass' 1 measure --lattices "$lattice" --masses 0.1,0.2 --actions mobius --Ls 2 \
  --deflate "$work/modes.h5" --output "$work/x.h5"
on 1 bench dirac --dims 4x4x4x4 --action mobius --Ls 4 --backends cpu_ref,cpu_simd --repetitions 1 --rhs 1,5 \
  --quiet --json "$work/dirac.json" || complain "bench dirac: exit $?"
[ "$(grep -c '"gflops"' "$work/dirac.json")" = 22 ] || complain "bench dirac: $(grep -c '"gflops"' "$work/dirac.json") rows"
for what in wilson "mobius --Ls 2 --magnetic 1"; do
  # shellcheck disable=SC2086
  on 2 validate --lattice "$lattice" --mass 0.3 --action $what --quiet --json "$work/validate.json" || complain "validate $what: exit $?"
  [ "$(key broken_bounds "$work/validate.json")" = 0 ] || complain "validate $what: bounds broken"
  [ "$(grep -c '"operation"' "$work/validate.json")" -ge 14 ] || complain "validate $what: $(grep -c '"operation"' "$work/validate.json") rows"
  [ "$(grep -c '"reason":.*of quarks without spin' "$work/validate.json")" = 2 ] || complain "validate $what: does not say what it leaves out"
  kappa validate "${what%% *}"
done
# The residual mass of double is that of solve; of every other row the deviation from it.
solved walls 1 --action mobius --Ls 2 --magnetic 1 --mass 0.3 --tol 1e-12
close "[$(value residual_mass validate)]" "[$(value residual_mass walls)]" 1e-9 || complain "validate: m_res $(value residual_mass validate)"
[ "$(value residual_mass_percent validate)" = 0 ] || complain "validate: double is off double by $(value residual_mass_percent validate) %"
[ "$(grep -c '"residual_mass_percent":.*[0-9]' "$work/validate.json")" = "$(grep -c '"reachable_residual"' "$work/validate.json")" ] ||
  complain "validate: rows of solvers without m_res"
for k in "" again; do # --csv replaces what it wrote, whose columns Ls and M5 are no small letters
  on 1 validate --lattice "$lattice" --mass 0.3 --action mobius --Ls 2 --backend cpu_simd --precision single --max-iter 5 \
    --csv "$work/walls.csv" >"$work/said" || complain "validate on the terminal: exit $?"
done
grep -q '^m_res   0.0e+00 ' "$work/said" || complain "validate does not say m_res: $(tail -3 "$work/said")"
on 1 validate --lattice "$lattice" --mass 0.3 --action mobius --Ls 3 --backend cpu_simd --precision single --max-iter 5 --quiet \
  --json "$work/odd.json" || complain "validate, three slices: exit $?"
[ -z "$(value residual_mass odd)" ] || complain "validate: three slices have no middle, got $(value residual_mass odd)"
on 1 bench suite --class XS --action wilson --parts copy --repetitions 1 --quiet --json "$work/suite.json" || complain "bench suite: exit $?"
kappa suite wilson
on 1 bench solver --dims 4x4x4x4 --action wilson --mass 0.2 --operators cpu_simd --inner none,single --solvers cg,block,gcr,bicgstab --rhs 2 \
  --repetitions 1 --tol 1e-9 --quiet --json "$work/solver.json" || complain "bench solver: exit $?"
kappa solver wilson
on 1 bench solver --lattice "$lattice" --action mobius --Ls 2 --mass 0.1 --modes 3 --inner none,half --rhs 2 \
  --repetitions 1 --tol 1e-9 --quiet --json "$work/deflated.json" || complain "bench solver --modes: exit $?"
[ "$(grep -c '"predicted":.*null' "$work/deflated.json")" = 2 ] || complain "bench solver --modes: break-even"
on 1 bench solver --lattice "$lattice" --action wilson --mass 0.1 --solvers multishift,refined --inner none,single --shifts 0,0.5 \
  --repetitions 1 --tol 1e-9 --quiet --json "$work/shifts.json" || complain "bench solver, shifts: exit $?"
[ "$(grep -c '"solver":' "$work/shifts.json")" = 4 ] || complain "bench solver, shifts: $(grep -c '"solver":' "$work/shifts.json") rows"

finish
