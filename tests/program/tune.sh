#!/usr/bin/env bash
# --tune FILE of every command that makes operators: a file that is damaged, no file or an input is
# refused before the work; without a GPU there is nothing to try, and no file is made.
. "$(dirname "$0")/common.sh"
lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
solve="solve --lattice $lattice --mass 0.5 --backend cpu_ref"
cd "$work" || exit 1

for ranks in 1 2; do
  on $ranks $solve --json plain.json --quiet || complain "solve: exit $?"
  on $ranks $solve --tune=choices.json --json tuned.json --quiet 2>err || complain "solve --tune: exit $?"
  [ "$(grep -c 'warning: --tune has no effect without hops on a GPU' err)" = 1 ] || complain "--tune on a CPU: $(cat err)"
  [ "$(key tuned tuned.json)" = "[]" ] || complain "nothing is tuned on a CPU: $(key tuned tuned.json)"
  [ "$(key residual_history plain.json)" = "$(key residual_history tuned.json)" ] || complain "other bits"
  grep -q '"tuned"' plain.json && complain "tuned unasked"
  [ ! -e choices.json ] || complain "a file of nothing: $(cat choices.json)"
  printf '{"format": "minidirac tuning 1", "choi' >damaged.json
  refuses 2 'must name a file that --tune wrote, but damaged.json is not whole JSON; remove it' $ranks $solve --tune=damaged.json
done
refuses 2 'damaged.json is not whole JSON' 1 eigen "$lattice" --modes 2 --tune damaged.json
refuses 2 'damaged.json is not whole JSON' 1 validate --lattice "$lattice" --tune damaged.json
refuses 2 'damaged.json is not whole JSON' 1 measure --lattices "$lattice" --masses 0.5 --sources point:0,0,0,0 --output study.h5 --tune damaged.json
refuses 2 'damaged.json is not whole JSON' 1 bench dirac --dims 4x4x4x4 --tune damaged.json
refuses 2 'damaged.json is not whole JSON' 1 bench solver --dims 4x4x4x4 --tune damaged.json
refuses 2 'damaged.json is not whole JSON' 1 bench suite --class XS --tune damaged.json
cp tuned.json other.json
refuses 2 "other.json has not the format 'minidirac tuning 1'" 1 $solve --tune other.json
refuses 2 '--tune' 1 $solve --tune .
refuses 2 '--tune' 1 $solve --tune "$lattice"
refuses 2 '--tune' 1 $solve --tune same.json --json same.json
refuses 3 'its folder no/folder: No such file' 1 $solve --tune no/folder/choices.json
printf '' >choices.json
on 1 $solve --tune choices.json --quiet || complain "an empty file: exit $?"
finish
