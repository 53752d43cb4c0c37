#!/usr/bin/env bash
# solve from end to end on a lattice of its own: sources, precisions, output, checkpoint and
# resume, decks, exit codes.
. "$(dirname "$0")/common.sh"
lattice=$work/lattice.h5
on 2 generate --dims 4x4x4x8 --start hot --seed 5 --output "$lattice" --quiet || complain "generate: exit $?"

# Every source; the residual that decides is the true one.
for source in point:1,2,3,4 wall:3 random:7; do
  on 2 solve --lattice "$lattice" --mass 0.2 --source $source --quiet --json "$work/s.json" || complain "$source: exit $?"
  awk -v r="$(key relative_residual "$work/s.json")" 'BEGIN { exit !(r > 0 && r <= 1e-10) }' || complain "$source: residual"
done
[ -n "$(key chiral_condensate "$work/s.json")" ] || complain "random source without condensate"

# Threads have 2 MiB of stack where the limit is none.
OMP_NUM_THREADS=2 OMP_STACKSIZE=2M on 1 solve --lattice "$lattice" --mass 0.2 --inner half --quiet || complain "2 MiB of stack: exit $?"
OMP_NUM_THREADS=2 OMP_STACKSIZE=1200k refuses 3 'threads must have stacks of 2 MiB, got 1200 KiB; raise OMP_STACKSIZE' 1 \
  solve --lattice "$lattice" --mass 0.2 --inner half
(failures=0; ulimit -s 512
  OMP_STACKSIZE=2M refuses 3 'the stack must have 2 MiB, got 512 KiB; raise the limit .ulimit -s' 1 solve --lattice "$lattice" --mass 0.2 --inner half
  [ $failures = 0 ]) || complain "a limit of the stack"

# An answer that was not reached is exit 1, and says how far it came.
on 1 solve --lattice "$lattice" --mass 0.01 --max-iter 3 --quiet 2>"$work/err"
[ $? = 1 ] || complain "three iterations: exit $?"
grep -q 'after 3 iterations' "$work/err" || complain "three iterations: $(cat "$work/err")"

# A resumed solve ends with the same bits as one that went through, also on other ranks.
on 1 solve --lattice "$lattice" --mass 0.05 --quiet --json "$work/through.json"
on 2 solve --lattice "$lattice" --mass 0.05 --quiet --checkpoint "$work/c.h5" --checkpoint-every 20 --max-iter 45 2>/dev/null
on 1 solve --lattice "$lattice" --mass 0.05 --quiet --checkpoint "$work/c.h5" --resume --json "$work/resumed.json" || complain "resume: exit $?"
for k in iterations relative_residual pion_correlator; do
  [ "$(key $k "$work/through.json")" = "$(key $k "$work/resumed.json")" ] || complain "resumed: $k differs"
done
refuses 2 'must belong to this solve' 1 solve --lattice "$lattice" --mass 0.06 --checkpoint "$work/c.h5" --resume

# The solution file is complete or absent, and h5dump knows its shape.
on 2 solve --lattice "$lattice" --mass 0.2 --quiet --output "$work/x.h5" || complain "output: exit $?"
if command -v h5dump >/dev/null; then
  for name in lattice lattice_checksum action mass tolerance version commit date_utc command_line; do
    h5dump -a "/propagator/solution/$name" "$work/x.h5" >/dev/null || complain "the solution does not say its $name"
  done
  h5dump -H -d /propagator/solution "$work/x.h5" | tr -d '\n ' | grep -q 'SIMPLE{(3,8,4,4,4,3)' || complain "shape of the solution"
else
  left_out what_h5dump_shows
fi

# A deck says what the flags say; the command line stands above it.
printf '[solve]\nlattice = %s\nmass = 0.2\ntol = 1e-6\nquiet = true\n' "$lattice" >"$work/deck.ini"
on 2 solve --config "$work/deck.ini" --tol 1e-4 --json "$work/deck.json" || complain "deck: exit $?"
[ "$(key tolerance "$work/deck.json")" = 0.0001 ] || complain "the flag does not stand above the deck"
finish
