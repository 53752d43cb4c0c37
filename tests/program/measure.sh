#!/usr/bin/env bash
# minidirac measure: what solve gives, the same bits on every rank grid and grouping, lattices that
# are done stay done, whatever ends the run; lattices that cannot be measured; refusals.
. "$(dirname "$0")/common.sh"
export OMP_NUM_THREADS=1
cd "$work" || exit 1
set -f # patterns are for the program
for seed in 1 2 3 10; do
  on 1 generate --dims 4x4x4x8 --beta 5.7 --sweeps 3 --seed $seed --output cfg$seed.h5 --quiet || complain "generate: exit $?"
done
# numbers FILE: all that was measured, but for times.
numbers() { sed '/"machine":/,/^\t}/d' "$1" | grep -vE '"(seconds|host|hosts|threads|waiting|ranks|grid|grid_reason|groups|command_line|date_utc|host_bytes_.*|device_bytes_.*|output|state|measured|resumed|json)":'; }
study="measure --lattices cfg*.h5 --masses 0.3,0.5 --vectors 4 --tol 1e-11 --quiet --momenta 0,0,0;1,0,0"
sources='point:1,0,2,3 seeded:2,5 corner:0 colour:1,4 random:1 u1:2'

on 1 $study --sources "$sources" --output a.h5 --json a.json || complain "measure: exit $?"
[ "$(key measured a.json)" = 4 ] && [ "$(key solver a.json)" = '"multishift"' ] || complain "four lattices by multi-shift: $(key measured a.json)"
grep '"lattice":' a.json | paste -sd' ' | grep -q 'cfg1.h5.*cfg2.h5.*cfg3.h5.*cfg10.h5' || complain "the order of numbers"
on 2 $study --sources "$sources" --output b.h5 --json b.json || complain "two ranks: exit $?"
on 4 $study --sources "$sources" --output c.h5 --json c.json --groups 2 || complain "two groups: exit $?"
on 4 $study --sources "$sources" --output d.h5 --json d.json --groups 4 || complain "four groups: exit $?"
for run in b c d; do
  [ "$(numbers a.json | grep -c '"correlator"')" = 12 ] && [ "$(numbers $run.json)" = "$(numbers a.json)" ] ||
    complain "$run: other bits: $(diff <(numbers a.json) <(numbers $run.json) | head -4)"
done

# One lattice is what solve makes of it, with every action; t counts from the source.
on 1 measure --lattices cfg2.h5 --actions naive,asqtad,hisq --u0 0.9 --masses 0.4 --solver cg --sources point:0,0,0,0 --output e.h5 --quiet --json e.json || complain "actions: exit $?"
for action in naive hisq 'asqtad --u0 0.9'; do
  on 1 solve cfg2.h5 --mass 0.4 --action $action --quiet --json s.json || complain "solve: exit $?"
  want=$(key pion_correlator s.json)
  got=$(sed -n "/\"action\":\t\"${action%% *}\"/,/error/s/.*\"correlator\":\t*\(\[.*\]\),*/\1/p" e.json | head -1)
  close "$got" "$want" 1e-8 || complain "$action: $got, solve has $want"
done
[ "$(key plaquette e.json)" = "$(key plaquette s.json)" ] || complain "plaquette"

# The error of one copy is unknown; studies of old have zeros there.
lone="measure --lattices cfg1.h5 --masses 0.5 --vectors 1 --quiet --output lone.h5"
on 1 $lone --sources 'random:1 point:0,0,0,0 colour:1,1' --json lone.json || complain "one copy: exit $?"
[ "$(grep -c '"chiral_condensate":' lone.json)" = 1 ] && [ "$(key stochastic_error lone.json)" = null ] || complain "one copy: $(key stochastic_error lone.json)"
if python_with h5py numpy; then
  python3 -c '
import h5py, numpy
with h5py.File("lone.h5", "r+") as file:
    for name in "condensate", "pion":
        error = file["study"][name + "_error"]
        assert numpy.isnan(error[:]).all() and not numpy.isnan(file["study"][name][:]).all(), name
        error[:] = numpy.where(numpy.isnan(file["study"][name][:]), numpy.nan, 0.0)
' || complain "one copy: errors in the file"
  on 1 $lone --sources 'random:1 point:0,0,0,0 colour:1,1' --resume --json old.json || complain "zeros of old: exit $?"
  [ "$(numbers old.json)" = "$(numbers lone.json)" ] || complain "zeros of old: other numbers"

  # Numbers that no lattice has are refused; what a source does not give is NaN in the file, and stays.
  while read -r name value rule; do
    cp lone.h5 spoiled.h5
    python3 -c '
import h5py, numpy, sys
name, value = sys.argv[1], float(sys.argv[2])
with h5py.File("spoiled.h5", "r+") as file:
    if name == "lattices":
        file["study"].attrs.modify(name, numpy.int64(value))
    else:
        data = file["study"][name][:]
        file["study"][name][:] = numpy.where(numpy.isnan(data), data, value)
' $name $value || complain "$name: exit $?"
    refuses 2 "spoiled.h5: $rule, got $value" 1 ${lone/lone.h5/spoiled.h5} --sources 'random:1 point:0,0,0,0 colour:1,1' --resume </dev/null
  done <<'END'
plaquette nan plaquette of cfg1.h5 must be finite
polyakov_loop inf polyakov_loop of cfg1.h5 must be finite
relative_residual nan relative_residual of cfg1.h5 must be finite and not negative
relative_residual -1 relative_residual of cfg1.h5 must be finite and not negative
iterations -1 iterations of cfg1.h5 must be finite and not negative
pion nan pion of cfg1.h5 must be finite
condensate inf condensate of cfg1.h5 must be finite
lattices 0 attribute lattices must be within 1..16777216
END
fi

# Two of the lattices, then all: the first two are not measured again, and nothing else changes.
on 1 measure --lattices 'cfg1.h5 cfg3.h5' ${study#*.h5} --sources "$sources" --output r.h5 || complain "two lattices: exit $?"
on 1 $study --sources "$sources" --output r.h5 --resume --json r.json || complain "resume: exit $?"
[ "$(key measured r.json)" = 2 ] && [ "$(key resumed r.json)" = 2 ] || complain "resumed: $(key resumed r.json)"
[ "$(numbers r.json)" = "$(numbers a.json)" ] || complain "resumed: other bits"
on 2 $study --sources "$sources" --output r.h5 --resume --json r.json || complain "resume of what is done: exit $?"
[ "$(key measured r.json)" = 0 ] && [ "$(numbers r.json)" = "$(numbers a.json)" ] || complain "a study that is done"
refuses 2 "r.h5 must belong to this study, its settings have 'sources .*', this study's 'sources point:0,0,0,0 random:1" 2 $study --sources 'point:0,0,0,0 random:1' --output r.h5 --resume
refuses 2 'r.h5 has results of cfg1.h5, which is not in --lattices' 1 measure --lattices cfg3.h5 ${study#*.h5} --sources "$sources" --output r.h5 --resume
refuses 2 'replaces no file, but r.h5 is there; go on with it by --resume' 2 $study --sources "$sources" --output r.h5
printf 'no HDF5' >broken.h5
refuses 2 'broken.h5' 2 $study --sources "$sources" --output broken.h5 --resume

# A signal after the first lattice: it stays, and the rest follows. mpirun passes SIGUSR1 on.
slow="measure --lattices cfg*.h5 --masses 0.005 --sources random:1 --vectors 48 --rhs 4 --quiet"
for ranks in 1 2; do
  rm -f slow.h5
  if [ $ranks = 1 ]; then
    timeout 120 "$minidirac" $slow --output slow.h5 --json slow.json 2>err &
  else
    timeout 120 mpirun -n 2 "$minidirac" $slow --output slow.h5 --json slow.json 2>err &
  fi
  job=$!
  for ((i = 0; i < 2000; i++)); do
    [ -e slow.h5 ] && break
    sleep 0.05
  done
  pkill -USR1 -P $job
  wait $job
  got=$?
  [ $got = 3 ] || complain "SIGUSR1 on $ranks ranks: exit $got, $(head -3 err)"
  grep -qE 'SIGUSR1 ended the study after [1-3] of 4 lattices; slow.h5 has them, go on with --resume' err || complain "SIGUSR1: $(head -3 err)"
  [ "$(key interrupted slow.json)" = true ] || complain "SIGUSR1: no report"
done
on 1 $slow --output slow.h5 --resume --json slow.json || complain "after a signal: exit $?"
on 1 $slow --output through.h5 --json through.json || complain "through: exit $?"
[ "$(key resumed slow.json)" -gt 0 ] && [ "$(numbers slow.json)" = "$(numbers through.json)" ] || complain "after a signal: other bits"

# A lattice counts once, in whatever files it is: the header says it of most, the links of all.
one="measure --masses 0.5 --sources point:0,0,0,0 --quiet"
cp cfg1.h5 again.h5
on 1 convert cfg1.h5 again.lime --quiet && on 1 convert cfg1.h5 single.h5 --precision single --quiet &&
  on 1 convert cfg1.h5 again.nersc --quiet && on 1 convert cfg1.h5 again.milc --format milc --quiet 2>/dev/null || complain "copies of a lattice: exit $?"
for copy in again.h5 again.lime ./cfg1.h5 single.h5 again.nersc again.milc; do
  rm -f twice.h5
  refuses 2 "a lattice must count once, $copy has the links of cfg1.h5, checksum '[0-9a-f ]+'.*--allow-repeats" 1 \
    $one --lattices "cfg1.h5 cfg2.h5 $copy" --output twice.h5
  case $copy in
  *[1n].h5 | *.lime) [ ! -e twice.h5 ] || complain "$copy: measured before the list was looked at" ;;
  *) on 1 $one --lattices 'cfg1.h5 cfg2.h5' --output twice.h5 --resume --json twice.json && [ "$(key resumed twice.json)" = 2 ] || complain "$copy: what was done before it is lost" ;;
  esac
done
refuses 2 'a lattice must count once, single.h5 has the links of cfg1.h5' 2 $one --lattices 'cfg1.h5 single.h5' --output twin.h5 --groups 2
on 2 $one --lattices 'single.h5 cfg1.h5 again.h5 cfg2.h5' --output kept.h5 --keep-going --groups 2 --json kept.json 2>err
[ $? = 1 ] && [ "$(key measured kept.json)" = 2 ] && [ "$(key skipped kept.json)" = 2 ] || complain "repeats with --keep-going: $(cat err)"
[ "$(grep -c 'is left out: a lattice must count once' err)" = 2 ] || complain "repeats with --keep-going: $(cat err)"
on 1 $one --lattices 'cfg1.h5 again.h5 single.h5' --output twice.h5 --force --allow-repeats --json twice.json || complain "--allow-repeats: exit $?"
[ "$(key measured twice.json)" = 3 ] || complain "--allow-repeats: $(key measured twice.json)"
refuses 2 'again.h5 has the links of cfg1.h5' 1 $one --lattices 'cfg1.h5 again.h5 single.h5' --output twice.h5 --resume
printf '[measure]\nlattices = cfg1.h5 again.h5\nmasses = 0.5\noutput = twice.h5\nforce = true\nallow-repeats = true\nquiet = true\n' >twice.ini
on 1 measure --config twice.ini || complain "allow-repeats in a deck: exit $?"
# What generate leaves: numbered files, of which the last is --output once more.
on 1 generate --dims 4x4x4x8 --beta 5.7 --sweeps 4 --save-every 2 --output chain.h5 --quiet || complain "generate: exit $?"
refuses 2 'chain.000004.h5 has the links of chain.h5|chain.h5 has the links of chain.000004.h5' 1 $one --lattices 'chain*.h5' --output chain.study
on 1 $one --lattices 'chain.*.h5' --output chain.study --json twice.json || complain "numbered files: exit $?"
[ "$(key measured twice.json)" = 2 ] || complain "numbered files: $(key measured twice.json)"

# Results belong to links, not to a name.
cp cfg1.h5 moved.h5 && on 1 $one --lattices 'moved.h5 cfg2.h5' --output moved.study || complain "measure: exit $?"
cp single.h5 moved.h5 && on 1 $one --lattices 'moved.h5 cfg2.h5' --output moved.study --resume --json moved.json || complain "the same links in another precision: exit $?"
[ "$(key resumed moved.json)" = 2 ] || complain "the same links in another precision: measured anew"
cp cfg3.h5 moved.h5
for ranks in 1 2; do
  refuses 2 "moved.h5 has changed since moved.study got its results, from checksum '[0-9a-f]+' to '[0-9a-f]+'" $ranks $one --lattices 'moved.h5 cfg2.h5' --output moved.study --resume --groups $ranks
done
on 1 $one --lattices 'moved.h5 cfg2.h5' --output moved.study --resume --force --json moved.json 2>err || complain "measured anew: $(cat err)"
grep -q 'warning: moved.h5 has changed' err && [ "$(key resumed moved.json)" = 1 ] && [ "$(key measured moved.json)" = 1 ] || complain "measured anew: $(cat err)"
on 1 $one --lattices cfg3.h5 --output three.h5 --json three.json || complain "measure: exit $?"
grep -q "\"plaquette\":[[:space:]]*$(key plaquette three.json)" moved.json || complain "measured anew: another plaquette"
# Those of links that were replaced leave the file, also where the new ones cannot be measured.
cp cfg1.h5 moved.h5
on 1 $one --lattices 'moved.h5 cfg2.h5' --max-iter 2 --output moved.study --resume --force --keep-going --json moved.json 2>err
[ $? = 1 ] && [ "$(key skipped moved.json)" = 1 ] && [ "$(key resumed moved.json)" = 1 ] || complain "replaced and left out: $(cat err)"
if python_with h5py; then
  python3 -c '
import h5py, json
kept = [row["lattice"] for row in json.load(open("moved.json"))["lattices"] if row["state"] != "skipped"]
assert [name.decode() for name in h5py.File("moved.study")["study/lattice"]] == kept, kept
' || complain "replaced and left out: the file has other lattices than the report"
fi
on 1 $one --lattices 'moved.h5 cfg2.h5' --output moved.study --resume --json moved.json 2>err || complain "replaced and left out: $(cat err)"
[ "$(key resumed moved.json)" = 1 ] && [ "$(key measured moved.json)" = 1 ] || complain "replaced and left out: its results of old are resumed"
on 1 $one --lattices moved.h5 --output alone.study || complain "measure: exit $?"
cp cfg3.h5 moved.h5
on 1 $one --lattices moved.h5 --max-iter 2 --output alone.study --resume --force --keep-going 2>err
[ $? = 1 ] && grep -q 'warning: alone.study still has the results of links that were replaced' err || complain "replaced, and nothing else: $(cat err)"
if python_with h5py; then # lattices without a checksum, studies of old without those of links
  python3 -c '
import h5py, shutil
for name in "cfg1", "cfg3":
    shutil.copy(name + ".h5", "bare." + name + ".h5")
    with h5py.File("bare." + name + ".h5", "r+") as file:
        for word in [w for w in file["gauge/links"].attrs if "sum" in w]:
            del file["gauge/links"].attrs[word]
with h5py.File("three.h5", "r+") as file:
    del file["study/links_checksum"]
' || complain "h5py: exit $?"
  cp bare.cfg1.h5 moved.h5 && on 1 $one --lattices 'moved.h5' --output bare.study 2>err && grep -q 'has no checksum' err || complain "no checksum: $(cat err)"
  on 1 $one --lattices 'moved.h5' --output bare.study --resume 2>err || complain "no checksum: $(cat err)"
  cp bare.cfg3.h5 moved.h5
  on 1 $one --lattices 'moved.h5' --output bare.study --resume 2>err
  [ $? = 2 ] && grep -q 'error: moved.h5 has changed since bare.study got its results' err || complain "no checksum: $(cat err)"
  on 1 $one --lattices cfg3.h5 --output three.h5 --resume --json three.json && [ "$(key resumed three.json)" = 1 ] || complain "a study of old: exit $?"
  cp cfg3.h5 kept.cfg3.h5 && cp cfg2.h5 cfg3.h5
  refuses 2 'cfg3.h5 has changed since three.h5 got its results' 1 $one --lattices cfg3.h5 --output three.h5 --resume
  mv kept.cfg3.h5 cfg3.h5
fi
rm -f kept.h5
# A file that cannot be written any more: every lattice is measured and reported, exit 3.
mkdir gone
timeout 120 "$minidirac" $slow --output gone/slow.h5 --json slow.json 2>err &
job=$!
for ((i = 0; i < 2000; i++)); do
  [ -e gone/slow.h5 ] && break
  sleep 0.05
done
mv gone went
wait $job
[ $? = 3 ] || complain "a folder that goes: $(head -3 err)"
[ "$(grep -c 'warning: results are not written yet, the study goes on' err)" = 1 ] || complain "a folder that goes: $(head -3 err)"
[ "$(key measured slow.json)" = 4 ] || complain "a folder that goes: $(key measured slow.json) of 4 lattices"

# A file that is missing, damaged or of another lattice in the middle.
head -c 30000 cfg2.h5 >cut.h5
cp cfg2.h5 flipped.h5
printf '\001\002\003' | dd of=flipped.h5 bs=1 seek=60000 conv=notrunc 2>/dev/null
on 1 generate --dims 4x4x4x4 --start hot --seed 1 --output other.h5 --quiet || complain "generate: exit $?"
for bad in none cut other; do
  refuses 2 "$bad.h5" $((${#bad} % 2 + 1)) $one --lattices "cfg1.h5 $bad.h5 cfg3.h5" --output bad.h5
  [ ! -e bad.h5 ] || complain "$bad: measured before the list was looked at"
done
refuses 2 'extents must be 4x4x4x8 as those of the other lattices, got 4x4x4x4 in other.h5' 1 $one --lattices 'cfg1.h5 other.h5' --output bad.h5
refuses 2 'flipped.h5' 1 $one --lattices 'cfg1.h5 flipped.h5 cfg3.h5' --output bad.h5
# The message is of the failure that gives the exit code, the first of two at once.
cp cfg1.h5 unsolved.h5
while read -r code first second; do
  refuses $code "error: $first.h5" 2 $one --lattices "$first.h5 $second.h5" --max-iter 3 --output two.h5 --force --groups 2 </dev/null
done <<<$'2 flipped unsolved\n1 unsolved flipped'
on 1 $one --lattices 'cfg1.h5 cfg3.h5' --output bad.h5 --resume --json bad.json || complain "after a damaged file: exit $?"
[ "$(key resumed bad.json)" = 1 ] || complain "the lattice before the damaged one is lost"
for groups in 1 2; do
  on 2 $one --lattices 'none.h5 cfg1.h5 flipped.h5 cut.h5 other.h5 cfg3.h5' --output kept.h5 --force --keep-going --groups $groups --json kept.json 2>err
  [ $? = 1 ] || complain "--keep-going: not exit 1"
  grep -q 'error: 4 of 6 lattices were left out' err || complain "--keep-going: $(cat err)"
  [ "$(grep -c 'is left out' err)" = 4 ] || complain "--keep-going: $(cat err)"
  [ "$(key skipped kept.json)" = 4 ] && [ "$(key measured kept.json)" = 2 ] || complain "--keep-going: $(key skipped kept.json)"
done
# A damaged copy keeps no sound one out; results of a file that is gone, or has other extents, stay.
on 1 $one --lattices 'flipped.h5 cfg2.h5' --output sound.h5 --keep-going --json sound.json 2>err
[ $? = 1 ] && [ "$(key measured sound.json)" = 1 ] && grep -q 'flipped.h5 is left out' err || complain "a damaged copy: $(cat err)"
cp cfg1.h5 gone.h5
on 1 $one --lattices 'cfg2.h5 gone.h5' --output gone_study.h5 --json before.json || complain "gone.h5: exit $?"
for other in none other; do
  rm -f gone.h5
  [ $other = none ] || cp other.h5 gone.h5
  on 1 $one --lattices 'cfg2.h5 gone.h5' --output gone_study.h5 --resume --keep-going --json gone.json 2>err || complain "a file that is gone: $(cat err)"
  grep -q 'gone.h5 keeps the results that gone_study.h5 has of it' err || complain "a file that is gone: $(cat err)"
  [ "$(key resumed gone.json)" = 2 ] && [ "$(key skipped gone.json)" = 0 ] && [ "$(numbers gone.json)" = "$(numbers before.json)" ] || complain "a file that is gone: $(key resumed gone.json)"
done
cp cfg1.h5 gone.h5
on 1 $one --lattices 'cfg2.h5 gone.h5' --output gone_study.h5 --force --json before.json || complain "gone.h5: exit $?"
cp cfg3.h5 gone.h5 # with another checksum in its header, and damaged
printf '\001\002\003' | dd of=gone.h5 bs=1 seek=60000 conv=notrunc 2>/dev/null
for force in '' --force; do
  on 2 $one --lattices 'cfg2.h5 gone.h5' --output gone_study.h5 --resume $force --keep-going --json gone.json 2>err || complain "a damaged file: $(cat err)"
  grep -q 'gone.h5 keeps the results that gone_study.h5 has of it: .*checksum' err || complain "a damaged file: $(cat err)"
  [ "$(key resumed gone.json)" = 2 ] && [ "$(numbers gone.json)" = "$(numbers before.json)" ] || complain "a damaged file: $(key resumed gone.json)"
done
on 1 $one --lattices cfg3.h5 --max-iter 2 --output gone_study.h5 --force --keep-going 2>err
[ $? = 1 ] && grep -q '1 of 1 lattice was left out; nothing is written to gone_study.h5' err || complain "nothing measured: $(cat err)"
on 1 $one --lattices 'none.h5 cut.h5' --output bad2.h5 --keep-going 2>err
[ $? = 2 ] && grep -q 'error: none of the 2 lattices can be read' err || complain "no lattice at all: $(cat err)"
refuses 1 'cfg1.h5: the true residual must be at most 1e-10, got' 2 $one --lattices cfg1.h5 --max-iter 3 --output bad2.h5

# Modes of each lattice and action: the same numbers with less than half of the iterations, on every grouping.
for seed in 1 2; do
  for action in naive hisq; do
    on 1 eigen cfg$seed.h5 --action $action --modes 24 --tol 1e-8 --output $action.cfg$seed.h5 --quiet || complain "eigen: exit $?"
  done
done
light="measure --masses 0.01,0.05 --sources random:1 --vectors 4 --quiet --force --actions naive,hisq"
all() { sed -n "s/.*\"$1\":\t*\(.*[^,]\),*$/\1/p" "$2" | paste -sd,; }
on 1 $light --lattices 'cfg1.h5 cfg2.h5' --solver cg --output plain.h5 --json plain.json || complain "without modes: exit $?"
for way in '1 --groups 1' '2 --groups 2' '2 --inner half' '1 --solver block'; do
  on ${way%% *} $light --lattices 'cfg1.h5 cfg2.h5' ${way#* } --deflate '{action}.{name}.h5' --output deflated.h5 --json deflated.json || complain "deflated, $way: exit $?"
  close "$(all chiral_condensate deflated.json)" "$(all chiral_condensate plain.json)" 1e-8 || complain "deflated, $way: $(all chiral_condensate deflated.json), $(all chiral_condensate plain.json) without modes"
  awk -v a="$(all iterations deflated.json)" -v b="$(all iterations plain.json)" 'BEGIN {
    n = split(a, x, ","); m = split(b, y, ",")
    for (i = 1; i <= n; i++) if (!(x[i] > 0 && 2 * x[i] < y[i])) exit 1
    exit !(n == 4 && m == 4)
  }' || complain "deflated, $way: $(all iterations deflated.json) iterations, $(all iterations plain.json) without modes"
  case $way in
  '1 --groups 1') [ "$(key solver deflated.json)" = '"cg"' ] || complain "the masses of a deflated study are solved by $(key solver deflated.json)" && kept=$(numbers deflated.json) ;;
  '2 --groups 2') [ "$(numbers deflated.json)" = "$kept" ] || complain "deflated: other bits on two groups" ;;
  esac
done
for solver in fcg gcr; do
  on 1 $one --lattices cfg1.h5 --deflate 'naive.{name}.h5' --solver $solver --precondition modes --output by_modes.h5 --force --json by_modes.json || complain "$solver, modes: exit $?"
  [ "$(key precondition by_modes.json)" = '"modes"' ] || complain "$solver: $(key precondition by_modes.json)"
done
cp cfg2.h5 copy.h5 && cp naive.cfg1.h5 naive.copy.h5 && mkdir sub && cp cfg1.h5 sub/cfg1.v2.h5 && cp naive.cfg1.h5 sub/cfg1.v2.modes
on 1 $one --lattices sub/cfg1.v2.h5 --deflate '{lattice}.modes' --output sub.h5 || complain "{lattice}: exit $?"
for n in 1 2; do cp cfg$n.h5 n.$n && cp naive.cfg$n.h5 naive.n.$n.h5 && cp cfg$n.h5 twin.v$n; done
on 1 $one --lattices 'n.1 n.2' --deflate 'naive.{name}.h5' --output numbers.h5 || complain "names that end in numbers: exit $?"
refuses 2 'names twin.modes for two' 2 $one --lattices 'twin.v1 twin.v2' --deflate '{name}.modes' --output bad3.h5
for ranks in 1 2; do
  refuses 2 'naive.copy.h5 must have the lattice checksum of this run' $ranks $one --lattices 'cfg1.h5 copy.h5' --deflate '{action}.{name}.h5' --output bad3.h5
  rm bad3.h5
  refuses 2 'naive.cfg3.h5' $ranks $one --lattices 'cfg1.h5 cfg3.h5' --deflate 'naive.{name}.h5' --output bad3.h5
  [ ! -e bad3.h5 ] || complain "measured before all modes were looked at"
done
on 2 $one --lattices 'cfg1.h5 copy.h5 cfg3.h5 cfg2.h5' --allow-repeats --deflate 'naive.{name}.h5' --output bad3.h5 --keep-going --groups 2 --json bad3.json 2>err
[ $? = 1 ] && [ "$(key skipped bad3.json)" = 2 ] && [ "$(key measured bad3.json)" = 2 ] || complain "modes of another lattice with --keep-going: $(cat err)"
refuses 2 'must have the action of this run' 1 $one --actions hisq --lattices cfg1.h5 --deflate 'naive.{name}.h5' --output x.h5
refuses 2 'must have the boundary of this run' 1 $one --boundary periodic --lattices cfg1.h5 --deflate naive.cfg1.h5 --output x.h5
refuses 2 'must have \{lattice\} or \{name\} in it' 1 $one --lattices 'cfg1.h5 cfg2.h5' --deflate naive.cfg1.h5 --output x.h5
refuses 2 'must have \{action\} in it' 1 $light --lattices cfg1.h5 --deflate naive.cfg1.h5 --output x.h5
refuses 2 'must be different files' 1 $one --lattices cfg1.h5 --deflate 'naive.{name}.h5' --output naive.cfg1.h5 --force
refuses 2 'goes without --deflate' 1 $one --lattices cfg1.h5 --deflate naive.cfg1.h5 --solver multishift --output x.h5
refuses 2 'there is no /modes' 1 $one --lattices cfg1.h5 --deflate cfg2.h5 --output x.h5

# A deck, and what cannot be.
printf '[measure]\nlattices = cfg1.h5 cfg2.h5\nmasses = 0.5\nsources = points:0,0,0,0;1,1,1,1 random:4\nvectors = 2\noutput = deck.h5\n' >deck.ini
on 1 measure --config deck.ini --json deck.json >out || complain "deck: exit $?"
grep -q 'points:0,0,0,0;1,1,1,1' deck.json && grep -q 'tr M^-1 / V' out || complain "deck: $(cat out)"
refuses 2 'needs --masses' 1 measure --lattices cfg1.h5 --output x.h5
refuses 2 "pattern 'no\*' of --lattices must name a file" 2 $one --lattices 'no*' --output x.h5
refuses 2 '--lattices must differ, cfg1.h5 is there twice' 1 $one --lattices 'cfg1.h5 cfg*.h5' --output x.h5
refuses 2 'must be different files' 1 $one --lattices 'cfg1.h5' --output cfg1.h5 --force
refuses 2 '--groups must divide the number of ranks, 2' 2 $one --lattices cfg1.h5 --output x.h5 --groups 3
refuses 2 '--masses must differ' 1 measure --lattices cfg1.h5 --masses 0.1,0.1 --output x.h5
refuses 2 'must lie on the lattice, 0 to 7 in direction t, got 8' 1 measure --lattices cfg1.h5 --masses 0.1 --sources 'wall:1 wall:8' --output x.h5
refuses 2 'none of the --actions takes --u0' 1 $one --lattices cfg1.h5 --u0 0.8 --output x.h5
refuses 2 'goes without --inner' 1 $one --lattices cfg1.h5 --solver multishift --inner single --output x.h5
refuses 2 '--vectors has no effect without a random source among --sources' 2 $one --lattices cfg1.h5 --vectors 4 --output x.h5
refuses 2 '--momenta must differ, 1,0,0 is there twice' 1 $one --lattices cfg1.h5 --momenta '1,0,0;0,0,0;1,0,0' --output x.h5
refuses 2 '--sources must name a source' 2 measure --masses 0.5 --lattices cfg1.h5 --sources ' ' --output x.h5
refuses 2 'sources must be one of point' 1 measure --lattices cfg1.h5 --masses 0.1 --sources 'wall:1 walls:2' --output x.h5
for groups in 1 2; do
  refuses 2 'does not serve precision half' 2 $one --lattices cfg1.h5 --output x.h5 --backend cpu_ref --precision half --groups $groups
done
finish
