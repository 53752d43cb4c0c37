#!/usr/bin/env bash
# Files of modes: eigen writes them, goes on from them on another rank grid, keeps what it has when
# a signal ends it; files of another lattice, action or boundary are refused.
. "$(dirname "$0")/common.sh"
export OMP_NUM_THREADS=1 # small lattices, thousands of short steps
lattice=$work/lattice.h5
on 1 generate --dims 4x4x4x8 --start hot --seed 1 --output "$lattice" --quiet || complain "generate: exit $?"
on 1 eigen "$lattice" --modes 6 --output "$work/modes.h5" --json "$work/1.json" --quiet || complain "eigen --output: exit $?"
[ "$(key output_written "$work/1.json")" = true ] && [ "$(key store "$work/1.json")" = '"double"' ] || complain "the report does not say what was written"
refuses 2 '--store has no effect without an --output in HDF5' 1 eigen "$lattice" --modes 2 --output "$work/modes.lime" --store half
refuses 2 '--store has no effect without --output MODES.h5' 1 eigen "$lattice" --modes 2 --store half
for store in half fixed8; do
  on 1 eigen "$lattice" --modes 6 --output "$work/$store.h5" --store $store --quiet || complain "--store $store: exit $?"
done

# An earlier search is gone on with: fewer filters, the same modes; all that stand are not found again.
steps=$(key iterations "$work/1.json")
for from in modes half fixed8; do
  for ranks in 1 2; do
    on $ranks eigen "$lattice" --modes 6 --start "$work/$from.h5" --json "$work/start.json" --quiet || complain "--start $from: exit $?"
    close "$(key eigenvalues "$work/start.json")" "$(key eigenvalues "$work/1.json")" 1e-9 || complain "--start $from: other modes"
    [ "$(key iterations "$work/start.json")" -lt "$steps" ] || complain "--start $from, $ranks ranks: no fewer than $steps filters"
  done
done
[ "$(key iterations "$work/start.json")" -gt 24 ] || complain "modes in fixed8 were taken as converged"
on 1 eigen "$lattice" --modes 6 --start "$work/modes.h5" --json "$work/start.json" --quiet
[ "$(key iterations "$work/start.json")" -le 24 ] || complain "modes that have converged were looked for again"
on 1 eigen "$lattice" --modes 9 --start "$work/modes.h5" --json "$work/more.json" --quiet || complain "more modes: exit $?"
on 1 eigen "$lattice" --modes 9 --json "$work/nine.json" --quiet
close "$(key eigenvalues "$work/more.json")" "$(key eigenvalues "$work/nine.json")" 1e-9 || complain "more modes: others"

# A signal leaves what there is in the file, and a search goes on from it. No residual is 1e-15 ever;
# modes stand when the window has been moved for the last time, at most four times.
for wait_s in 2 5 10 30; do
  timeout 120 "$minidirac" eigen "$lattice" --modes 6 --tol 1e-15 --max-restarts 10000000 --quiet --output "$work/int.h5" --force --json "$work/int.json" 2>"$work/err" &
  sleep $wait_s
  kill -TERM $(pgrep -P $! -x minidirac || echo $!)
  wait $!
  [ $? = 3 ] || complain "SIGTERM: $(cat "$work/err")"
  if [ -e "$work/int.h5" ] && [ "$(key restarts "$work/int.json")" -ge 8 ]; then break; fi
done
grep -qF "go on with --start $work/int.h5" "$work/err" || complain "SIGTERM: $(cat "$work/err")"
on 1 eigen "$lattice" --modes 6 --start "$work/int.h5" --json "$work/start.json" --quiet || complain "after a signal: exit $?"
[ "$(key iterations "$work/start.json")" -le 24 ] || complain "after a signal: found again"

on 1 generate --dims 4x4x4x8 --start hot --seed 2 --output "$work/other.h5" --quiet
on 1 generate --dims 4x4x4x4 --start hot --seed 2 --output "$work/short.h5" --quiet
for ranks in 1 2; do
  refuses 2 'must have the lattice checksum of this run' $ranks eigen "$work/other.h5" --modes 6 --start "$work/modes.h5"
done
refuses 2 'is of a 4x4x4x8 lattice, needed is one of 4x4x4x4' 1 eigen "$work/short.h5" --modes 6 --start "$work/modes.h5"
refuses 2 "must have the boundary of this run, 'periodic', got 'antiperiodic'" 1 eigen "$lattice" --modes 6 --boundary periodic --start "$work/modes.h5"
refuses 2 "must have the action of this run, 'asqtad, u0 1', got 'naive'" 1 eigen "$lattice" --modes 6 --action asqtad --start "$work/modes.h5"
refuses 2 '--force has no effect without --output' 1 eigen "$lattice" --modes 2 --force
refuses 2 'must have no suffix that stands for links, got x.ildg; end it in .h5' 1 eigen "$lattice" --modes 2 --output x.ildg
refuses 2 'modes.h5 is there' 1 eigen "$lattice" --modes 6 --output "$work/modes.h5"
refuses 2 '/modes' 1 eigen "$lattice" --modes 6 --start "$lattice"
on 1 eigen "$lattice" --modes 2 --output "$work/modes.h5" --force --quiet || complain "--force: exit $?"
finish
