#!/usr/bin/env bash
# Checkpoints of solve: the same bits in every inner precision, what a state belongs to, states that
# cannot be written, and solves that end in numbers that are none.
. "$(dirname "$0")/common.sh"
cd "$work"
on 1 generate --dims 4x4x4x4 --start hot --seed 5 -o small.h5 --quiet || complain "generate: exit $?"
on 1 generate --dims 4x4x4x8 --start hot --seed 6 -o long.h5 --quiet || complain "generate: exit $?"
on 1 eigen small.h5 --modes 4 --output modes.h5 --quiet || complain "eigen: exit $?"
on 1 solve small.h5 --mass 0.5 --tol 1e-3 --output guess.h5 --quiet || complain "guess: exit $?"

# resumes ITERATIONS EVERY OPTIONS...: cut off there, and at a multiple of EVERY, then resumed on
# other ranks: all numbers of the report are those of the solve that nothing disturbed.
numbers() { grep -E '"(iterations|relative_residual|residual.*|.*correlator|reliable_updates|inner_restarts|rhs_iterations|mode_projections)":' "$1"; }
resumes() {
  local first=$1 every=$2
  shift 2
  rm -f k.h5
  on 1 solve "$@" --quiet --json through.json 2>/dev/null
  local whole=$?
  on 2 solve "$@" --quiet --checkpoint k.h5 --checkpoint-every $every --max-iter $first --json cut.json 2>err
  [ $? = 1 ] || complain "$* to iteration $first: $(cat err)"
  [ "$(key iterations cut.json)" = $first ] || complain "$*: no report of $first iterations"
  on 1 solve "$@" --quiet --checkpoint k.h5 --checkpoint-every $every --resume --max-iter $((first + 2 * every)) 2>err
  [ $? = 1 ] || complain "$* resumed once: $(cat err)"
  on 1 solve "$@" --quiet --checkpoint k.h5 --resume --json resumed.json 2>err
  [ $? = $whole ] || complain "$* resumed: $(cat err)"
  [ "$(numbers through.json)" = "$(numbers resumed.json)" ] ||
    complain "$* resumed: other bits: $(key iterations through.json) and $(key iterations resumed.json) iterations"
}
for inner in none single half bf16 fixed; do resumes 41 7 small.h5 --mass 0.05 --inner $inner; done
for precision in single half fixed; do resumes 6 2 small.h5 --mass 0.3 --tol 1e-3 --precision $precision; done
resumes 50 25 long.h5 --mass 0.1 --inner half --source random:1 --rhs 4
resumes 50 9 long.h5 --mass 0.4 --inner fixed
resumes 30 3 small.h5 --mass 0.05 --deflate modes.h5
resumes 30 3 small.h5 --mass 0.05 --inner half --deflate modes.h5 --guess guess.h5
resumes 30 3 small.h5 --mass 0.05 --tol 1e-15 --guess guess.h5

# --max-iter leaves a state, also without --checkpoint-every.
for inner in none half; do
  rm -f k.h5
  on 1 solve small.h5 --mass 0.01 --inner $inner --checkpoint k.h5 --max-iter 9 --quiet 2>err
  grep -q 'raise --max-iter or --tol and add --resume' err || complain "a state at --max-iter: $(cat err)"
  refuses 2 'checkpoint k.h5 is at iteration 9; raise' 1 solve small.h5 --mass 0.01 --inner $inner --checkpoint k.h5 --max-iter 9 --resume
done

# changed NAME VALUE PATTERN OPTIONS...: the state k.h5 of that solve, with another value in all places of an
# attribute, is refused.
python_with h5py numpy && has_h5py=1 || has_h5py=
changed() {
  [ "$has_h5py" ] || return 0
  cp k.h5 changed.h5
  python3 -c '
import h5py, numpy, sys
with h5py.File("changed.h5", "r+") as file:
    words = file["checkpoint"].attrs
    words.modify(sys.argv[1], numpy.full_like(words[sys.argv[1]], float(sys.argv[2])))
' "$1" "$2" || complain "h5py: exit $?"
  refuses 2 "checkpoint changed.h5 must have $3" 1 solve "${@:4}" --checkpoint changed.h5 --resume
}

# Right-hand sides one after the other: the state of the first that takes more iterations than all before it, whose
# solutions are in the file, and the same bits behind it; those that follow one that does not converge leave no state.
later() { # OPTIONS...: 1 where none takes longer
  local each longest r
  on 1 solve "$@" --quiet --json through.json || complain "$*: exit $?"
  [ "$(key rhs_block through.json)" = 1 ] || return 0 # this machine solves them at once
  read -r -a each <<<"$(key rhs_iterations through.json | tr -d '[],')"
  longest=${each[0]}
  for r in "${each[@]}"; do [ "$r" -le "$longest" ] || break; done
  [ "$r" -gt "$longest" ] || return 1
  rm -f k.h5
  on 2 solve "$@" --quiet --checkpoint k.h5 --checkpoint-every 1 --max-iter $((r - 1)) 2>/dev/null
  [ $? = 1 ] && grep -q solution_odd k.h5 || complain "$*: no state of a later right-hand side"
  refuses 2 'k.h5 must be of this --tol or a smaller one, 1e-13, got a residual of' 1 solve "$@" --tol 1e-13 --checkpoint k.h5 --resume
  changed rhs_iterations_before $r 'rhs_iterations_before within 0..' "$@"
  changed residuals_before -1 'a finite residuals_before of at least 0, got -1' "$@"
  changed residual_history_before nan 'a finite residual_history_before of at least 0, got nan' "$@"
  on 1 solve "$@" --quiet --checkpoint k.h5 --resume --json resumed.json || complain "$* resumed: exit $?"
  [ "$(numbers through.json)" = "$(numbers resumed.json)" ] || complain "$* resumed later: other bits"
}
for with in '--inner half' '--inner bf16 --guess guess.h5 --deflate modes.h5'; do
  for seed in 1 2 3 4 5 6; do
    # shellcheck disable=SC2086
    later small.h5 --mass 0.3 --source random:$seed --rhs 3 $with && break
  done || complain "$with: no right-hand side takes longer than those before it"
done

# The solutions that a state has belong to their sources.
for seed in 1 2 3 4 5 6; do
  on 1 solve small.h5 --mass 0.3 --tol 1e-2 --source random:$seed --rhs 3 --output src.h5 --force --quiet || complain "src.h5: exit $?"
  later small.h5 --mass 0.3 --inner half --source file:src.h5 && break
done
on 1 solve small.h5 --mass 0.3 --tol 1e-2 --source random:9 --rhs 3 --output src.h5 --force --quiet || complain "src.h5: exit $?"
[ "$(key rhs_block through.json)" != 1 ] ||
  refuses 2 'must belong to this solve: <b, x> of right-hand side 0 is .* give the same source' 1 solve small.h5 --mass 0.3 --inner half \
    --source file:src.h5 --checkpoint k.h5 --resume

# The solution of a solve that --max-iter ends at a multiple of --checkpoint-every is written.
with="solve small.h5 --mass 0.01 --quiet --checkpoint k.h5 --checkpoint-every 4 --max-iter 8"
on 1 $with --json r.json --output x.h5 2>err
[ $? = 1 ] && [ -s x.h5 ] && grep -q 'raise --max-iter' err || complain "a multiple of --checkpoint-every: $(cat err)"
[ "$(key checkpoint_failures r.json)" = 0 ] || complain "a checkpoint failed"
refuses 2 'checkpoint k.h5 is at iteration 8; raise --max-iter above it' 1 $with --resume
small='small.h5 --mass 0.01 --quiet'
for value in nan inf -1; do
  changed r_norm2 $value "a finite r_norm2 of at least 0, got $value at place 0" $small
  changed residual_history $value "a finite residual_history of at least 0, got $value at place 0" $small
  changed start_norm2 $value "a finite start_norm2 of at least 0, got $value at place 0" $small
done
changed rhs_iterations 9 'rhs_iterations within 0..8, got 9 of right-hand side 0' $small
changed rhs_iterations -1 'rhs_iterations within 0..8, got -1 of right-hand side 0' $small

# A state belongs to all that changes a bit, however long the words.
zeros=$(printf '0%.0s' {1..3000})
at=point:${zeros},0,0,0
with="solve small.h5 --mass 0.05 --quiet --checkpoint k.h5"
on 1 $with --source "$at" --checkpoint-every 4 --max-iter 9 2>err
[ $? = 1 ] || complain "a long source: exit $?: $(head -c 300 err)"
other() { refuses 2 "k.h5 must belong to this solve: $1" 1 $with --resume "${@:2}"; }
other 'source ...*0,0,0,0 there, .*1,0,0,0 here' --source "point:${zeros}1,0,0,0"
other 'boundary antiperiodic there, periodic here' --source "$at" --boundary periodic
refuses 2 'must belong to this solve: mass 0.05[0-9]* there, 0.0500000000000000[0-9]* here' 1 ${with/0.05/0.05000000000000001} --source "$at" --resume
other 'action naive there, hisq, naik-epsilon 0 here' --source "$at" --action hisq
other 'action naive there, naive, imaginary mu' --source "$at" --imaginary-mu 0.1
other 'action naive there, naive, imaginary mu 0, flux quanta -1 here' --source "$at" --magnetic 1
other 'precision double there, single here' --source "$at" --precision single
other 'inner none there, half here' --source "$at" --inner half
other 'reconstruct 18 there, 12 here' --source "$at" --reconstruct 12
other 'backend cpu_simd there, cpu_ref here' --source "$at" --backend cpu_ref
other 'guess none there, guess.h5 here' --source "$at" --guess guess.h5
other 'deflate none there, modes.h5 here' --source "$at" --deflate modes.h5
walls='solve small.h5 --mass 0.5 --action mobius --Ls 4 --checkpoint w.h5'
on 1 $walls --checkpoint-every 4 --max-iter 9 --quiet 2>/dev/null
refuses 2 'parameters .*, M5 1.8, b5 1.5, c5 0.5 there, .*, M5 1.8000000000000003, .* here' 1 $walls --M5 1.8000000000000003 --resume
on 1 generate --dims 4x4x4x4 --start hot --seed 7 -o other.h5 --quiet
refuses 2 'must belong to this solve: links [0-9a-f]{16} there, [0-9a-f]{16} here' 1 solve other.h5 --mass 0.05 --source "$at" --checkpoint k.h5 --resume
on 1 solve small.h5 --mass 0.05 --guess guess.h5 --checkpoint k.h5 --checkpoint-every 4 --max-iter 9 2>/dev/null >/dev/null
on 1 solve small.h5 --mass 0.4 --tol 1e-2 --output guess.h5 --force --quiet
refuses 2 'must belong to this solve: it began with' 1 $with --guess guess.h5 --resume
on 1 convert small.h5 renamed.lime --quiet && mv small.h5 away.h5
on 1 solve away.h5 --mass 0.05 --checkpoint k.h5 --checkpoint-every 4 --max-iter 9 2>/dev/null >/dev/null
on 1 solve renamed.lime --mass 0.05 --checkpoint k.h5 --resume --quiet || complain "a renamed lattice: exit $?"
for solver in block auto multishift; do
  refuses 2 "--solver $solver goes without .*--checkpoint" 1 solve away.h5 --mass 0.1 --solver $solver $([ $solver = multishift ] && echo --shifts 0,1) --checkpoint k.h5 --checkpoint-every 4
done

# A state that finds no room ends no solve: one warning, the report and the solution, and exit 3.
on 1 generate --dims 8x8x8x16 --start hot -o many.h5 --quiet # 16 MB of solution, 24 of state
many="solve many.h5 --mass 0.5 --source random:1 --rhs 40 --tol 1e-3 --quiet --checkpoint full.h5 --checkpoint-every 3"
(ulimit -f 20480; on 1 $many --output y.h5 --json r.json >out 2>err)
[ $? = 3 ] || complain "no room for states: $(cat err)"
[ "$(grep -c 'warning: the checkpoint of iteration 3 is not written, the solve goes on' err)" = 1 ] || complain "no room for states: $(cat err)"
grep -q 'error: the solve is done, but its state could not be written to full.h5 [0-9]* times' err || complain "no room for states: $(cat err)"
[ -s y.h5 ] && [ "$(key converged r.json)" = true ] && [ "$(key checkpoint_failures r.json)" -gt 1 ] || complain "no room for states: $(ls y.h5 r.json)"
mkdir gone
on 2 solve many.h5 --mass 0.01 --max-iter 300 --quiet --checkpoint gone/k.h5 --checkpoint-every 1 --json r.json 2>err &
for _ in $(seq 3000); do [ -e gone/k.h5 ] && break; sleep 0.01; done
mv gone away
wait $!
[ $? = 1 ] && grep -q 'warning: the checkpoint' err && [ "$(key checkpoint_failures r.json)" -gt 0 ] || complain "a folder that goes: $(cat err)"

# Numbers that overflow: exit 1, with the report, whatever the command.
if python_with array; then
  python3 - "$source_dir/inputs/beta5.7_4x4x4x8.lime" huge.lime <<'P'
import array, sys
raw = bytearray(open(sys.argv[1], 'rb').read())
at, size = raw.index(b'ildg-binary-data') - 16 + 144, 4 * 4 * 4 * 8 * 4 * 18 * 8
links = array.array('d', raw[at:at + size])
links.byteswap()
links = array.array('d', [1e200 * x for x in links])
links.byteswap()
raw[at:at + size] = links.tobytes()
open(sys.argv[2], 'wb').write(raw)
P
  for solver in '' '--inner single' '--solver block' '--solver block --inner half' '--solver auto --inner single' '--solver multishift --shifts 0,1' '--precision half'; do
    rm -f r.json
    on 1 solve huge.lime --ignore-checksum --mass 0.1 $solver --quiet --json r.json --output z.h5 >/dev/null 2>err
    [ $? = 1 ] || complain "huge links, $solver: exit $?"
    grep -qE 'error: .*finite' err || complain "huge links, $solver: $(cat err)"
    [ "$(key converged r.json)" = false ] && [ "$(key relative_residual r.json)" = null ] || complain "huge links, $solver: no report"
    [ ! -e z.h5 ] || complain "huge links, $solver: a solution"
  done
  overflows() { # COMMAND OPTIONS...: exit 1 and a report
    rm -f r.json
    on 1 "$@" --ignore-checksum --quiet --json r.json >/dev/null 2>err
    [ $? = 1 ] || complain "huge links, $1: exit $?"
    [ -s r.json ] || complain "huge links, $1: no report"
  }
  for block in 1 16; do
    overflows eigen huge.lime --modes 4 --block $block --output z.h5
    grep -qE 'error: .*finite' err || complain "huge links, eigen: $(cat err)"
    [ "$(key converged r.json)" = false ] && [ "$(key converged_modes r.json)" = 0 ] || complain "huge links, eigen: $(cat r.json)"
    [ "$(key output_written r.json)" = false ] && [ ! -e z.h5 ] || complain "huge links, eigen: modes"
  done
  for masses in 0.1 0.1,0.2; do
    overflows measure --lattices huge.lime --masses $masses --output z.h5
    grep -qE 'error: huge.lime: .*finite' err && [ "$(key measured r.json)" = 0 ] || complain "huge links, measure: $(cat err)"
    [ ! -e z.h5 ] || complain "huge links, measure: results"
  done
  overflows validate huge.lime --backend cpu_ref --precision double
  grep -qE 'error: .*bounds' err && [ "$(key broken_bounds r.json)" -gt 0 ] || complain "huge links, validate: $(cat err)"
fi

# A narrow solve goes on to a tighter tolerance than that of its state.
rm -f k.h5
on 1 solve long.h5 --mass 0.3 --precision single --tol 1e-2 --checkpoint k.h5 --checkpoint-every 2 --quiet 2>err || complain "--tol 1e-2: $(cat err)"
on 1 solve long.h5 --mass 0.3 --precision single --tol 1e-5 --checkpoint k.h5 --resume --quiet 2>err || complain "--tol 1e-5 from there: $(cat err)"
# What stalled is not helped by more iterations.
for with in '--precision single --tol 1e-12' '--inner half --tol 1e-19' '--precision single --tol 1e-12 --solver multishift --shifts 0,1'; do
  on 1 solve long.h5 --mass 0.3 $with --quiet 2>err
  [ $? = 1 ] && grep -q 'stalled at .*; raise --tol' err || complain "stalled, $with: $(cat err)"
done
on 1 measure --lattices long.h5 --masses 0.3 --precision single --tol 1e-12 --output st.h5 --quiet 2>err
grep -q 'stalled at .*; raise --tol' err || complain "a study that stalled: $(cat err)"
finish
