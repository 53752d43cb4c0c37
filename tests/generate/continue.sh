#!/usr/bin/env bash
# A chain that goes on from its file is the chain that never stopped, bit for bit, on any rank grid and
# in every format that holds its record; numbered files; what a file does not say.
. "$(dirname "$0")/../program/common.sh"
cd "$work" || exit 1
export OMP_NUM_THREADS=1
# links FILE: the checksum of its links.
links() { on 1 info "$1" --json i.json --quiet && key checksum_computed i.json; }
chain=(--dims 4x4x4x8 --beta 5.7 --seed 7 --overrelax 2)
on 1 generate "${chain[@]}" --sweeps 6 -o whole.h5 --save-every 2 --quiet --json whole.json || complain "whole: exit $?"
for n in 000002 000004 000006; do [ -e whole.$n.h5 ] || complain "no whole.$n.h5"; done
[ "$(ls whole.0*.h5 | wc -l)" = 3 ] || complain "numbered files: $(ls whole.*)"
[ "$(links whole.000006.h5)" = "$(links whole.h5)" ] || complain "the last numbered file has other links"
[ "$(links whole.000004.h5)" != "$(links whole.h5)" ] || complain "all numbered files have the same links"

for format in h5 lime nersc; do
  on 1 generate "${chain[@]}" --sweeps 2 --precision double -o first.$format --force --quiet || complain "$format: exit $?"
  # Seed, beta and overrelaxation are those of the file.
  on 2 generate --from first.$format --sweeps 4 -o rest.h5 --force --quiet --json rest.json || complain "rest of $format: exit $?"
  [ "$(links rest.h5)" = "$(links whole.h5)" ] || complain "$format: a chain that went on has other links"
  [ "$(key first_sweep rest.json)" = 3 ] || complain "$format: first sweep $(key first_sweep rest.json)"
  [ "$(key seed rest.json)" = 7 ] || complain "$format: seed $(key seed rest.json)"
done
# The measurements of the chain stay with its file, those before this run apart.
on 1 generate --from whole.000002.h5 --sweeps 4 -o rest.h5 --force --quiet --json rest.json || complain "exit $?"
on 1 generate --from whole.000002.h5 --sweeps 4 -o rest.h5 --force >out && grep -q '(mean after sweep 4,' out || complain "sweeps: $(cat out)"
all="$(key plaquettes_before rest.json), $(key plaquette_history rest.json)"
close "[${all//[\[\]]/}]" "$(key plaquette_history whole.json)" 1e-13 || complain "plaquettes: $all"
on 1 info rest.h5 --json i.json --quiet
grep -q '"minidirac chain":.*"beta=5.7.* seed=7 sweeps=6 overrelax=2"' i.json || complain "the record is $(grep 'minidirac chain' i.json)"
# What no option may be is none in a file either, unless an option stands above it.
python3 - first.lime bad <<'PYTHON' || complain "no record in first.lime"
import re, sys
whole = open(sys.argv[1], "rb").read()
for name, old, new in (("beta", rb"beta=[^ ]*", b"beta=1e9"), ("overrelax", rb"overrelax=2", b"overrelax=1001"),
                       ("sweeps", rb"sweeps=2", b"sweeps=-7"), ("seed", rb"seed=7", b"seed=9007199254740993")):
    record = re.search(rb"beta=[0-9.]+ seed=7 sweeps=2 overrelax=2", whole).group()
    changed = re.sub(old, new, record)
    changed = changed.replace(b"beta=5.7000000000000002", b"beta=5.7")
    open(f"bad-{name}.lime", "wb").write(whole.replace(record, changed.replace(b" ", b" " * (1 + len(record) - len(changed)), 1)))
series = whole.index(b"chain plaquettes") + len(b"chain plaquettes")
number = re.search(rb" ([0-9.]{10,})", whole[series:])
at = series + number.start(1)
open("bad-series.lime", "wb").write(whole[:at] + b"inf".ljust(len(number.group(1))) + whole[at + len(number.group(1)):])
PYTHON
refuses 2 'beta must be within 0..1e.06, bad-beta.lime says 1e.09; give --beta' 2 generate --from bad-beta.lime --sweeps 1 -o x.h5 --force
refuses 2 'dims must be those of whole.h5, 4x4x4x[0-9]+, got 8x4x4x4; leave --dims out' 2 generate --from whole.h5 --dims 8x4x4x4 -o x.h5 --force
refuses 2 'overrelax must be within 0..1000, bad-overrelax.lime says 1001; give --overrelax' 2 generate --from bad-overrelax.lime --sweeps 1 -o x.h5 --force
refuses 2 'seed must be within 0..9007199254740992, bad-seed.lime says 9007199254740993; give --seed' 2 generate --from bad-seed.lime --sweeps 1 -o x.h5 --force
on 1 generate --from bad-seed.lime --seed 7 --sweeps 1 -o seeded.h5 --quiet || complain "another seed: exit $?"
on 1 generate --from bad-series.lime --sweeps 1 -o series.h5 --quiet --json series.json || complain "bad series: exit $?"
key plaquettes_before series.json | grep -q '^\[0\.[0-9]*\]$' || complain "a series is read beyond what is no number: $(key plaquettes_before series.json)"
on 1 generate --from bad-overrelax.lime --overrelax 2 --sweeps 1 -o bounded.h5 --quiet || complain "exit $?"
on 1 generate --from bad-sweeps.lime --beta 5.7 --seed 7 --sweeps 1 -o uncounted.h5 --quiet --json uncounted.json 2>err || complain "exit $?"
grep -q 'does not say which sweeps made it' err && [ "$(key first_sweep uncounted.json)" = 1 ] || complain "-7 sweeps: $(cat err uncounted.json)"
# What a file in single precision says of its links, and the report, is of the links that it has.
for format in h5 lime nersc; do
  on 1 generate --from whole.h5 --sweeps 1 --precision single -o single.$format --quiet --json g.json || complain "single $format: exit $?"
  on 1 info single.$format --json i.json --quiet
  for name in plaquette link_trace; do
    close "$(key header_$name i.json)" "$(key $name i.json)" 1e-13 || complain "single $format: header: $name $(key header_$name i.json)"
    [ "$(key $name g.json)" = "$(key $name i.json)" ] || complain "single $format: the report has $name $(key $name g.json)"
  done
done
# Another seed or beta stands above the file's; sweeps are counted on.
on 1 generate --from whole.000002.h5 --sweeps 4 --seed 8 -o other.h5 --quiet || complain "exit $?"
[ "$(links other.h5)" != "$(links whole.h5)" ] || complain "another seed made the same links"
# A file of nobody's chain, a format without a place for the record, files that are there.
on 1 generate --dims 4x4x4x4 --start hot -o hot.h5 --quiet
on 1 generate --from hot.h5 --sweeps 1 -o x.h5 --quiet 2>err || complain "exit $?"
grep -q 'hot.h5 does not say which sweeps made it' err || complain "no warning: $(cat err)"
on 1 generate --dims 4x4x4x4 --sweeps 1 --format milc -o x.milc --quiet 2>err || complain "exit $?"
grep -q "no place for a chain's record" err || complain "no warning of milc: $(cat err)"
# A --format that holds no chain leaves the checkpoint's to its suffix.
on 1 generate --dims 4x4x4x4 --sweeps 1 --format milc -o y.milc --checkpoint y.h5 --quiet 2>err || complain "exit $?: $(cat err)"
mv whole.000002.h5 kept.h5 && rm whole.h5
refuses 2 'whole.000004.h5' 2 generate --from kept.h5 --sweeps 3 --save-every 2 -o whole.h5
cp hot.h5 cold # the word that --from has by itself
refuses 2 '--checkpoint replaces a state of this chain alone, but cold holds other data' 2 generate --dims 4x4x4x4 --sweeps 1 --format hdf5 -o colder.h5 --checkpoint cold

# A history that has no place in the format is named.
on 1 generate --dims 2x2x2x2 --sweeps 2 -o history.nersc --quiet 2>err || complain "exit $?"
grep -q 'history.nersc: nersc files have no place for these texts, which are dropped: chain plaquettes' err || complain "no warning: $(cat err)"

# A file that cannot be written, a numbered one or the last, costs neither the chain nor the report.
for every in 10 0; do
  mkdir folder && rm -f out
  on 1 generate "${chain[@]}" --sweeps 3000 --save-every $every -o folder/lost.h5 --checkpoint state$every.h5 --json lost.json >out 2>err &
  job=$!
  until [ -s out ] && { [ $every = 0 ] || [ -e folder/lost.000010.h5 ]; } || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
  mv folder gone$every
  wait $job
  [ $? = 3 ] && [ "$(grep -c '^minidirac: error: ' err)" = 1 ] || complain "a lost folder, every $every: $(cat err)"
  grep -q "folder/lost.*; state$every.h5 has the links" err || complain "a lost folder, every $every: $(cat err)"
  on 1 info state$every.h5 --json i.json --quiet
  last=$(key sweeps_done lost.json)
  grep -q "seed=7 sweeps=$last overrelax=2" i.json || complain "the state after $last sweeps: $(grep 'minidirac chain' i.json)"
  [ $every != 0 ] || [ "$last" = 3000 ] || complain "a lost folder ended the chain after $last sweeps"
  [ $every = 0 ] || [ "$last" -lt 3000 ] || complain "a numbered file that failed did not end the chain"
done
finish
