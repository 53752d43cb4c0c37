#!/usr/bin/env bash
# minidirac eigen: the same modes on every rank grid and with every backend, a report with the keys
# that others read, exit 1 where modes do not converge, exit 3 after a signal, refusals.
. "$(dirname "$0")/common.sh"
export OMP_NUM_THREADS=1 # small lattices, thousands of short steps
lattice=$work/lattice.h5
on 1 generate --dims 4x4x4x8 --start hot --seed 1 --output "$lattice" --quiet || complain "generate: exit $?"

for ranks in 1 2 4; do
  on $ranks eigen "$lattice" --modes 6 --json "$work/$ranks.json" --quiet || complain "$ranks ranks: exit $?"
  close "$(key eigenvalues "$work/$ranks.json")" "$(key eigenvalues "$work/1.json")" 1e-12 ||
    complain "$ranks ranks: $(key eigenvalues "$work/$ranks.json")"
done
# Blocks: the same bits on every rank grid, the same modes as one vector at a time.
for ranks in 1 2; do
  on $ranks eigen "$lattice" --modes 6 --block 16 --json "$work/block.$ranks.json" --quiet || complain "--block 16, $ranks ranks: exit $?"
  for name in eigenvalues residuals iterations; do
    [ "$(key $name "$work/block.$ranks.json")" = "$(key $name "$work/block.1.json")" ] || complain "--block 16, $ranks ranks: other $name"
  done
done
close "$(key eigenvalues "$work/block.1.json")" "$(key eigenvalues "$work/1.json")" 1e-10 || complain "--block 16: $(key eigenvalues "$work/block.1.json")"
[ "$(key block "$work/block.1.json")" = 16 ] && [ "$(key block "$work/1.json")" = 1 ] || complain "the reports do not say --block"
# Small blocks beside few modes have steps enough between restarts: four of them would take 15.
on 1 generate --dims 8x4x4x10 --start hot --seed 2 --output "$work/hot.h5" --quiet || complain "generate: exit $?"
on 1 eigen "$work/hot.h5" --modes 3 --block 2 --max-restarts 5 --quiet || complain "blocks of two: exit $?"
on 1 generate --dims 4x4x4x4 --start hot --seed 1 --output "$work/small.h5" --quiet || complain "generate: exit $?"
on 1 eigen "$work/small.h5" --modes 6 --json "$work/small.json" --quiet || complain "a small lattice: exit $?"
on 1 eigen "$work/small.h5" --modes 6 --backend cpu_ref --seed 2 --json "$work/ref.json" --quiet || complain "cpu_ref: exit $?"
close "$(key eigenvalues "$work/ref.json")" "$(key eigenvalues "$work/small.json")" 1e-10 || complain "cpu_ref, another seed: other modes"
# Levels of unit links in two quanta of flux: 1 of 24 modes, 2 of 48. A window that begins at one orders nothing above.
on 1 generate --dims 4x4x4x2 --start cold --output "$work/cold.h5" --quiet || complain "generate: exit $?"
levels() { # levels MODES: the lowest of both
  awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%s%d", i ? ", " : "[", i < 24 ? 1 : 2; print "]" }'
}
for case in "9" "6 --seed 250" "30" "72 --seed 3"; do
  on 1 eigen "$work/cold.h5" --magnetic 2 --block 4 --modes $case --json "$work/flux.json" --quiet || complain "flux, --modes $case: exit $?"
  close "$(key eigenvalues "$work/flux.json")" "$(levels ${case%% *})" 1e-12 || complain "flux, --modes $case: $(key eigenvalues "$work/flux.json")"
done
for name in lattice dims boundary action backend packing modes block tolerance converged eigenvalues residuals iterations restarts filter_degree seconds; do
  [ -n "$(key $name "$work/1.json")" ] || complain "the report has no key $name"
done
[ "$(key converged "$work/1.json")" = true ] && [ "$(key converged_modes "$work/1.json")" = 6 ] || complain "not converged"
on 1 eigen "$lattice" --modes 2 | grep -E '^ +1 +[0-9.e+-]+ +[0-9.e+-]+$' >/dev/null || complain "no table of modes"

# Of 7 modes none, or not all, in one restart, which leaves no search for others.
refuses 1 '(residuals of modes must be at most 1e-12, got .* after 1 restarts; [0-7] of 7|left none to look for others).*raise --max-restarts' 1 \
  eigen "$lattice" --modes 7 --tol 1e-12 --max-restarts 1 --quiet --json "$work/short.json"
[ "$(key converged "$work/short.json")" = false ] || complain "one restart: the report says converged"
[ -n "$(key eigenvalues "$work/short.json")" ] || complain "one restart: no eigenvalues in the report"

# What has converged is in the report of a run that a signal ends. No residual is 1e-15 ever.
timeout 120 "$minidirac" eigen "$lattice" --modes 6 --tol 1e-15 --max-restarts 10000000 --quiet --json "$work/int.json" 2>"$work/err" &
sleep 2
kill -TERM $(pgrep -P $! -x minidirac || echo $!)
wait $!
[ $? = 3 ] || complain "SIGTERM: $(cat "$work/err")"
grep -qE 'SIGTERM ended the search for modes after [0-9]+ restarts; 0 of 6 had converged' "$work/err" || complain "SIGTERM: $(cat "$work/err")"
[ "$(key interrupted "$work/int.json")" = true ] || complain "SIGTERM: no report of an interrupted run"

for ranks in 1 2; do
  refuses 2 '--modes must lie in 1 to 10000, got 0' $ranks eigen "$lattice" --modes 0
  refuses 2 '--modes must lie in 1 to 768 on this lattice, three for each even site, got 769' $ranks eigen "$lattice" --modes 769
done
refuses 2 '--block must lie in 1 to 128, got 129' 1 eigen "$lattice" --modes 3 --block 129
refuses 2 'needs --modes' 1 eigen "$lattice"
refuses 2 'needs --lattice LATTICE, with or without the flag' 1 eigen --modes 3
refuses 2 '--tol must lie in 1e-15 to' 1 eigen "$lattice" --modes 3 --tol 1e-16
refuses 1 'modes converged; raise --tol$' 1 eigen "$lattice" --modes 3 --tol 1e-15 --max-restarts 9 --quiet
on 1 eigen "$lattice" --backend tensor_emu --modes 2 --tol 1e-2 --quiet || complain "tensor_emu without --block: exit $?"
# Vectors of one level that a search for others mixes change no value.
on 1 generate --dims 2x2x2x2 --start cold -o "$work/tiny.h5" --quiet &&
  on 1 eigen "$work/tiny.h5" --action domainwall --Ls 3 --mass 0.5 --modes 2 --tol 1e-10 --max-restarts 100 --quiet ||
  complain "degenerate modes: exit $?"
finish
