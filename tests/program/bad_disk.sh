#!/usr/bin/env bash
# A file that is lost or changed between its writing and its reading back is refused as the machine's
# fault, whatever its format, and the old file stays. The third argument is the library that does it; the fourth damages messages.
. "$(dirname "$0")/common.sh"
breaks=$3
cd "$work" || exit 1
on 1 generate --dims 4x4x4x4 --start hot --seed 1 -o a.h5 --quiet || complain "generate: exit $?"
for format in hdf5 ildg milc nersc; do
  echo old >$format
  for how in lost changed; do
    LD_PRELOAD=$breaks BAD_DISK=$how "$minidirac" convert a.h5 $format --format $format --force --quiet >out 2>err
    got=$?
    [ $got = 3 ] && [ "$(grep -c '^minidirac: error: .*partial' err)" = 1 ] || complain "$format $how: exit $got: $(cat err)"
    [ "$(cat $format)" = old ] && ! ls $format.* >/dev/null 2>&1 || complain "$format $how: $(ls $format*)"
  done
done
for how in lost changed; do
  LD_PRELOAD=$breaks BAD_DISK=$how "$minidirac" solve a.h5 --mass 1 --tol 1e-3 --output x.lime --quiet >out 2>err
  got=$?
  [ $got = 3 ] && [ "$(grep -c '^minidirac: error: .*partial' err)" = 1 ] || complain "a solution $how: exit $got: $(cat err)"
done
# A file of the suite that is damaged is a check that fails, and what was measured stays.
LD_PRELOAD=$breaks BAD_DISK=named "$minidirac" bench suite --class XS --parts io,copy --repetitions 1 --json io.json >out 2>err
got=$?
[ $got = 1 ] && grep -q '^FAIL  links written and read back, hdf5' out && grep -qP '^\t"pass":\s*false' io.json && grep -q '"part":.*"copy"' io.json ||
  complain "a damaged file of the suite: exit $got: $(cat err)"
# A message with another bit that --check-halo finds ends a benchmark of solves too.
LD_PRELOAD=$4 FLIP_AT=100 on 2 bench solver --lattice a.h5 --mass 0.5 --operators cpu_simd --inner none --check-halo >out 2>err
got=$?
[ $got = 3 ] && grep -q 'error: halo message .* its hash' err || complain "a damaged message: exit $got: $(tail -2 out err)"
LD_PRELOAD=$breaks "$minidirac" convert a.h5 hdf5 --format hdf5 --force --quiet || complain "nothing is broken: exit $?"
finish
