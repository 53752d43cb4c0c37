#!/usr/bin/env bash
# Each command that solves or searches, once, on a lattice so small that it takes no time under
# sanitizers either: their own tests, program.NAME, take too long there.
. "$(dirname "$0")/common.sh"
export OMP_NUM_THREADS=1
cd "$work" || exit 1
set -f # patterns are for the program
for seed in 1 2; do
  on 1 generate --dims 4x4x4x4 --beta 5.7 --sweeps 2 --seed $seed --output cfg$seed.h5 --quiet || complain "generate: exit $?"
done
for ranks in 1 2; do
  on $ranks eigen cfg1.h5 --modes 6 --block 4 --output modes.h5 --store fixed8 --json eigen.json --quiet --force || complain "eigen on $ranks ranks: exit $?"
  on $ranks eigen cfg1.h5 --modes 8 --start modes.h5 --action hisq --output hisq.h5 --quiet --force 2>err &&
    complain "eigen begins with modes of another action"
  on $ranks eigen cfg1.h5 --modes 6 --start modes.h5 --output again.h5 --quiet --force || complain "eigen --start on $ranks ranks: exit $?"
  [ "$(key converged eigen.json)" = true ] || complain "eigen on $ranks ranks has not converged"
  for way in '--inner half' '--solver block' '--solver multishift --shifts 0,0.01 --refine'; do
    on $ranks solve cfg1.h5 --mass 0.1 --source random:1 --rhs 2 --deflate modes.h5 $way --output x.h5 --json solve.json --quiet --force ||
      complain "solve $way on $ranks ranks: exit $?"
  done
  on $ranks solve cfg1.h5 --mass 0.1 --output guess.h5 --checkpoint state.h5 --checkpoint-every 5 --quiet --force || complain "solve on $ranks ranks: exit $?"
  on $ranks solve cfg1.h5 --mass 0.1 --guess guess.h5 --output x.h5 --quiet --force || complain "solve --guess on $ranks ranks: exit $?"
  on $ranks measure --lattices 'cfg*.h5' --masses 0.1,0.2 --actions naive,hisq --sources 'point:0,0,0,0 random:1' --vectors 2 \
    --groups $ranks --output study.h5 --json study.json --quiet --force || complain "measure on $ranks ranks: exit $?"
  [ "$(key measured study.json)" = 2 ] || complain "measure on $ranks ranks: $(key measured study.json) lattices"
  on $ranks measure --lattices cfg1.h5 --masses 0.1 --sources random:1 --vectors 2 --deflate again.h5 --output deflated.h5 --quiet --force ||
    complain "measure --deflate on $ranks ranks: exit $?"
  on $ranks measure --lattices cfg1.h5 --masses 0.1 --sources random:1 --vectors 2 --deflate again.h5 --output deflated.h5 --quiet --resume ||
    complain "measure --resume on $ranks ranks: exit $?"
done
head -c 3000 modes.h5 >cut.h5
refuses 2 'cut.h5' 2 solve cfg1.h5 --mass 0.1 --deflate cut.h5
refuses 2 'must have the lattice checksum of this run' 2 measure --lattices cfg2.h5 --masses 0.1 --deflate again.h5 --output x2.h5 --quiet
refuses 1 'residuals of modes must be at most|left none to look for others' 1 eigen cfg1.h5 --modes 7 --tol 1e-12 --max-restarts 1 --quiet
finish
