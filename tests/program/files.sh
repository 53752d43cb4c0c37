#!/usr/bin/env bash
# What a command writes: names are judged before the work, nothing is lost to a failure, a killed
# writer leaves no mess, permissions and links stay.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
on 1 generate --dims 4x4x4x8 --start hot --seed 5 --output a.h5 --quiet || complain "generate: exit $?"
cp a.h5 original.h5
ln -s a.h5 link.h5
ln a.h5 hard.h5
mkdir folder
mkfifo pipe
s="solve --lattice a.h5 --mass 0.2 --quiet --tol 1e-3"
c="--checkpoint-every 1 --checkpoint"

# Before the work: the lattice of these is not even there, or would be read first.
paths='link.h5 hard.h5 ./folder/../a.h5'
late="solve --lattice not-there.h5 --mass 0.2"
for option in --output "$c" --json; do
  word=${option##* --} word=${word#--}
  refuses 2 "--$word must be a file, but /dev/full is a device" 1 $late $option /dev/full
  refuses 2 "--$word must be a file, but pipe is a pipe" 1 $late $option pipe
  refuses 2 "--$word must be a file, but /dev/stdout is a descriptor" 1 $late $option /dev/stdout # a regular file
  refuses 2 "--$word must be a file, but /dev/fd/[0-9]+ is a pipe" 1 $late $option >(cat)
  refuses 2 "--$word must be a file, but folder is a directory" 1 $late $option folder
  refuses 2 "--$word must be a file, but absent/ is the name of a directory" 1 $late $option absent/
  path=${paths%% *} paths=${paths#* }
  refuses 2 "LATTICE and --$word must be different files, both are $path" 1 $s $option $path
  refuses 3 "nowhere/x cannot be written: its folder nowhere: No such file" 2 $late $option nowhere/x
done
refuses 2 "must be a file, but /dev/null is a device; '-' is standard output" 1 $late --json /dev/null
for with in "--output $late --output" "--checkpoint $late $c" "OUT convert not-there.h5" "--output generate --dims 4x4x4x4 --start cold -o" \
  "--output measure --lattices not-there.h5 --masses 1 --output"; do
  refuses 2 "^minidirac: error: ${with%% *} must be a file: '-' is standard output, which takes reports alone; give a file name" 1 ${with#* } -
done
refuses 2 '--output and --json must be different files' 1 $s --output x.h5 --json folder/../x.h5
refuses 2 '--output and --checkpoint must be different files' 1 $s --output x.h5 $c "$work/x.h5"
refuses 2 '--csv and --json must be different files' 1 bench dirac --dims 4x4x4x4 --csv - --json -
refuses 2 '--csv must be a file, but folder is a directory' 1 bench dirac --dims 4x4x4x4 --csv folder
refuses 2 'IN and OUT must be different files' 1 convert a.h5 link.h5 --force
printf '[defaults]\njson = a.h5\n[solve]\nmass = 0.2\n' >defaults.ini
refuses 2 'LATTICE and --json must be different files' 1 solve a.h5 --config defaults.ini
refuses 2 '--from and --output must be different files' 1 generate --from a.h5 --sweeps 1 -o hard.h5 --force
printf 'lattice = a.h5\nmass = 0.2\n' >deck.ini
refuses 2 '--config and --json must be different files' 1 solve --config deck.ini --json deck.ini

# Names that a command makes of given ones are judged with them, by whatever name the file goes.
on 1 generate --dims 4x4x4x4 --sweeps 2 --overrelax 0 -o chain.h5 --quiet || complain "generate: exit $?"
cp chain.h5 ch.000003.h5
cp a.h5 in-0.h5
ln -s in-0.h5 soft-1.h5
ln in-0.h5 hard-1.h5
ms="--mass 0.2 --solver multishift --shifts 0,1 --force"
refuses 2 'LATTICE and --output must be different files, both are in-0.h5' 2 solve in-0.h5 $ms --output in.h5
for name in soft hard; do
  refuses 2 "LATTICE and --output must be different files, both are $name-1.h5 .in-0.h5.;" 1 solve in-0.h5 $ms --output $name.h5
done
refuses 2 '--output and --json must be different files, both are ./new-1.h5 .new-1.h5.' 1 solve a.h5 $ms --output new.h5 --json ./new-1.h5
ln -s one-1.h5 one-0.h5
refuses 2 '--output and --output must be different files, both are one-1.h5 .one-0.h5.' 1 solve a.h5 $ms --output one.h5
rm one-0.h5
on 1 solve a.h5 --mass 1 --solver multishift --shifts 0 --tol 1e-3 --quiet --format hdf5 --output ./.one || complain "a name that begins with a dot: exit $?"
[ -e .one-0 ] || complain "a name that begins with a dot: $(ls -A)"
refuses 2 '--from and --save-every must be different files, both are ch.000003.h5' 2 generate --from ch.000003.h5 --sweeps 2 --save-every 1 -o ch.h5 --force
refuses 2 '--save-every and --checkpoint must be different files' 1 generate --dims 4x4x4x4 --sweeps 2 --save-every 1 -o new.h5 --checkpoint ./new.000002.h5
refuses 2 '--save-every replaces no file, but ch.000003.h5 is there' 1 generate --from chain.h5 --sweeps 2 --save-every 1 -o ch.h5
refuses 2 '--json replaces reports and tables alone, but link.h5 holds other data' 1 measure --lattices a.h5 --masses 1 --output new.h5 --json link.h5
refuses 2 '--lattices and --output must be different files' 1 measure --lattices "chain.h5 a.h5" --masses 1 --output hard.h5 --force
for bench in gemv shift transpose; do
  refuses 2 '--csv and --json must be different files, both are ./new.csv .new.csv.' 1 bench $bench --csv new.csv --json ./new.csv
done
refuses 3 'nowhere/minidirac-suite-.*: its folder nowhere: No such file' 2 bench suite --class XS --scratch nowhere
long=$(printf 'n%.0s' {1..191})
refuses 2 'must have at most 191 bytes, got 192: n*[.]{3}; give a shorter one' 2 solve not-there.h5 --mass 0.2 --output "$long"n
refuses 2 'must have at most 191 bytes, got 193' 1 info a.h5 --json "folder/${long}nn"
refuses 2 'must have at most 191 bytes, got 193' 1 solve a.h5 $ms --output "$long"
refuses 2 'must have at most 191 bytes, got 198' 1 generate --from chain.h5 --sweeps 2 --save-every 1 --format hdf5 -o "$long"
on 1 info a.h5 --quiet --json "$long" || complain "a name of 191 bytes: exit $?"
refuses 2 'a.h5/x.json must lie in a folder, but a.h5 is none; give another name' 2 info chain.h5 --json a.h5/x.json
cmp -s chain.h5 ch.000003.h5 || complain "a refused chain changed its start"
cmp -s a.h5 in-0.h5 || complain "a refused solve changed its lattice"
cmp -s a.h5 original.h5 || complain "a refused run changed the lattice"
compgen -G 'new*' >/dev/null && complain "refused runs wrote $(echo new*)"

# Every file that is read may be a pipe by mistake: said at once, not waited for.
m="--mass 0.2"
for read in "info pipe" "convert pipe x.h5" "smear pipe --action hisq --fat-out x.h5 --long-out y.h5" \
  "generate --from pipe --sweeps 1 -o x.h5" "solve pipe $m" "solve a.h5 $m --guess pipe" "solve a.h5 $m --deflate pipe" \
  "solve $m --action hisq --fat pipe --long a.h5" "eigen a.h5 --modes 2 --start pipe" "validate pipe" \
  "measure --lattices pipe --masses 1 --output x.h5" "bench solver --lattice pipe"; do
  refuses 2 'pipe must be a file, it is a pipe' 1 $read
done
refuses 2 '--checkpoint must be a file, but pipe is a pipe' 1 solve a.h5 $m --checkpoint pipe --resume
if [ "$(id -u)" != 0 ]; then
  mkdir locked && chmod 500 locked
  refuses 3 'locked/x.h5 cannot be written: its folder locked: Permission denied' 1 $late --output locked/x.h5
  cp a.h5 unread && chmod 200 unread
  refuses 2 '--json replaces reports and tables alone, but unread holds other data' 1 info a.h5 --json unread
fi

# Results replace nothing unless they are told to; reports and checkpoints do.
echo mine >x.h5
refuses 2 '--output replaces no file, but x.h5 is there; add --force' 2 $s --output x.h5
refuses 2 '--output replaces no file' 1 generate --dims 4x4x4x4 --start cold -o x.h5
refuses 2 'OUT replaces no file' 1 convert a.h5 x.h5
[ "$(cat x.h5)" = mine ] || complain "a result replaced a file unasked"
chmod 640 x.h5
ln -s ../x.h5 folder/through.h5
on 2 $s --output folder/through.h5 --force --json r.json || complain "--force: exit $?"
[ -L folder/through.h5 ] || complain "a symbolic link was replaced"
[ "$(stat -c %a x.h5)" = 640 ] || complain "permissions of the old file: $(stat -c %a x.h5)"
[ "$(stat -c %s x.h5)" -gt 1000 ] || complain "--force wrote no solution"
grep -q '"output_written":.*true' r.json || complain "the report does not say that the solution was written"
(umask 027 && on 1 $s --json new.json) || complain "new report: exit $?"
[ "$(stat -c %a new.json)" = 640 ] || complain "permissions of a new file: $(stat -c %a new.json)"
on 1 $s --json new.json $c c.h5 && on 1 $s --json new.json $c c.h5 || complain "reports and checkpoints may be replaced"

# But only such: a report that is there is text, a state one of a solve, or of the same chain.
cp "$2"/inputs/beta*.lime data.lime 2>/dev/null || on 1 convert a.h5 data.lime --quiet
on 1 convert a.h5 data.nersc --format nersc --quiet 2>/dev/null || complain "convert to NERSC: exit $?"
for data in a.h5 data.lime data.nersc x.h5 c.h5; do
  cp $data theirs
  refuses 2 '--json replaces reports and tables alone, but theirs holds other data; give another' 2 info chain.h5 --json theirs
  refuses 2 '--csv replaces reports and tables alone, but theirs holds other data' 1 bench gemv --csv theirs
  cmp -s $data theirs || complain "a refused report replaced $data"
  [ $data = c.h5 ] && continue
  refuses 2 '--checkpoint replaces the state of a solve alone, but theirs holds other data' 2 $s --checkpoint theirs
  cmp -s $data theirs || complain "a refused state replaced $data"
done
# Of two messages in one file the first one's links are read, by what it says of them.
on 1 generate --dims 8x4x4x4 --start hot --seed 6 -o other.lime --quiet || complain "generate: exit $?"
cat data.lime other.lime >both.lime
for name in data both; do on 1 info $name.lime --quiet --json $name.json || complain "info of $name.lime: exit $?"; done
[ "$(key plaquette both.json)" = "$(key plaquette data.json)" ] || complain "two messages: plaquette $(key plaquette both.json)"
printf '#!/bin/sh\necho hello, world\n' >job.sh
cp job.sh theirs
refuses 2 '--csv replaces reports and tables alone, but theirs holds other data' 1 bench copy --csv theirs
refuses 2 '--json replaces reports and tables alone, but theirs holds other data' 2 $s --json theirs
cmp -s job.sh theirs || complain "a refused report replaced a script"
: >empty
on 1 info a.h5 --quiet --json empty && on 1 info a.h5 --quiet --json empty || complain "an empty file and a report may be replaced"
for _ in 1 2; do on 1 bench copy --quiet --csv table.csv || complain "a table may be replaced"; done
g="generate --dims 4x4x4x4 --sweeps 1 --quiet -o g.h5 --force"
on 1 $g || complain "generate: exit $?"
cp a.h5 theirs.h5
refuses 2 '--checkpoint replaces a state of this chain alone, but theirs.h5 holds other data; add --force' 1 \
  generate --dims 4x4x4x4 --sweeps 1 -o g2.h5 --checkpoint theirs.h5
refuses 2 '--checkpoint replaces a state of this chain alone' 2 generate --dims 4x4x4x4 --sweeps 1 --seed 2 -o g2.h5 --checkpoint g.h5
refuses 2 '--checkpoint replaces a state of this chain alone' 1 generate --dims 4x4x4x4 --sweeps 1 --overrelax 2 -o g2.h5 --checkpoint g.h5
cmp -s a.h5 theirs.h5 || complain "a refused chain replaced a lattice"
on 1 generate --dims 4x4x4x4 --sweeps 1 --quiet -o g2.h5 --checkpoint g.h5 || complain "a state of the same chain: exit $?"

# A finished solve reports, even where its solution cannot be written; the old file stays.
cp x.h5 kept.h5
rm r.json
on 1 generate --dims 8x8x8x16 --start hot -o many.h5 --quiet || complain "generate: exit $?"
many="solve --lattice many.h5 --mass 1 --source random:1 --rhs 64 --tol 0.1" # 25 MB of solution
(ulimit -f 16384; on 1 $many --output x.h5 --force --json r.json >out 2>err) # more than MPI's own files
[ $? = 3 ] || complain "a full disk: not exit 3 but: $(cat err)"
grep -q 'no room for' err || complain "a full disk: $(cat err)"
grep -q 'converged' out || complain "a full disk kept a finished solve from printing"
grep -q '"output_written":.*false' r.json || complain "a full disk kept a finished solve from its report"
cmp -s x.h5 kept.h5 || complain "a full disk cost the old file"

# Two runs make one new name: one has it, the other says where its own file is.
for i in 1 2; do
  (on 1 generate --dims 8x8x8x8 --sweeps 40 --seed $i -o race.h5 --quiet 2>race.err$i; echo $? >race.code$i) &
done
wait
case $(cat race.code1 race.code2 | sort | tr '\n' ' ') in
'0 3 ')
  kept=$(sed -n 's/.* race.h5 was made by another program meanwhile and stays; what this run wrote is //p' race.err?)
  on 1 info "$kept" --quiet || complain "the later of two writers lost its links: '$kept'"
  cmp -s "$kept" race.h5 && complain "two chains of two seeds are one"
  rm -f "$kept"
  ;;
'0 2 ') grep -q 'replaces no file, but race.h5 is there' race.err? || complain "two writers: $(cat race.err?)" ;; # a late start
*) complain "two writers of one new name: $(cat race.code? race.err?)" ;;
esac
on 1 info race.h5 --quiet || complain "the earlier of two writers lost its links"
for i in 1 2; do
  (on 1 measure --lattices race.h5 --masses 0.0$i --output study.h5 --quiet 2>race.err$i; echo $? >race.code$i) &
done
wait
case $(cat race.code1 race.code2 | sort | tr '\n' ' ') in
'0 3 ') grep -q ' study.h5 was made by another program meanwhile and stays; .* is study.h5.*.kept' race.err? || complain "two studies: $(cat race.err?)" ;;
'0 2 ') grep -q 'replaces no file, but study.h5 is there' race.err? || complain "two studies: $(cat race.err?)" ;;
*) complain "two studies of one new name: $(cat race.code? race.err?)" ;;
esac

# Two writers of one name that may be replaced: both succeed.
for i in 1 2; do
  (on $i $s --output both.h5 --force || echo failed >two) &
  (on 1 info a.h5 --quiet --json both.json || echo failed >two) &
done
wait
[ ! -e two ] || complain "one of several writers failed"
on 1 solve both.h5 --mass 1 2>/dev/null && complain "a propagator is a lattice"
grep -q '"checksum":.*"ok"' both.json || complain "the report of several writers is not whole"

# A rank that cannot write the file that others can: one message, no hang, nothing left.
mkdir first second
cp a.h5 first
cp a.h5 second
alone() { # ARGUMENTS...: rank 1 in another folder
  mpirun -n 1 -wdir "$work/first" "$minidirac" "$@" : -n 1 -wdir "$work/second" "$minidirac" "$@"
}
export -f alone
for with in "convert a.h5 o.h5" "solve a.h5 --mass 1 --output o.h5" "generate --dims 4x4x4x8 --start hot -o o.h5"; do
  # shellcheck disable=SC2086
  minidirac=$minidirac work=$work timeout 60 bash -c 'alone "$@"' alone $with --quiet 2>err
  got=$?
  [ $got = 3 ] && grep -q 'cannot be opened on rank 1: No such file' err || complain "$with, a folder of one rank: exit $got: $(head -3 err)"
  [ -z "$(ls first | grep -v '^a.h5$')" ] || complain "$with, a folder of one rank leaves $(ls first)"
done

# A killed rank: the old file stays, and the next run removes what was left.
on 1 generate --dims 24x24x16x16 --start cold --precision single -o wide.h5 --quiet
# Neither can a rank that may write small files alone.
timeout 60 mpirun -n 1 "$minidirac" convert wide.h5 o.h5 --quiet : -n 1 bash -c 'ulimit -f 20000; exec "$@"' limited "$minidirac" convert wide.h5 o.h5 --quiet 2>err
got=$?
[ $got = 3 ] && grep -q 'cannot be written on rank 1: files may have 20480000 bytes there.*ulimit -f' err || complain "a limit of one rank: exit $got: $(head -3 err)"
cp original.h5 target.h5
mpirun -n 2 "$minidirac" convert wide.h5 target.h5 --force --quiet >/dev/null 2>&1 &
launcher=$!
for _ in $(seq 3000); do
  compgen -G 'target.h5.*.partial' >/dev/null && break
  kill -0 $launcher 2>/dev/null || break
  sleep 0.01
done
rank=$(pgrep -P $launcher | tail -1)
[ -n "$rank" ] && kill -9 "$rank"
wait $launcher && echo "the writer was done before it could be killed"
cmp -s target.h5 original.h5 || on 1 info target.h5 --quiet || complain "a killed rank cost the old file"
on 2 convert a.h5 target.h5 --force --quiet || complain "the leavings of a killed rank are in the way"
compgen -G 'target.h5.*' >/dev/null && complain "the leavings of a killed rank stay: $(echo target.h5.*)"
compgen -G '*.partial' >/dev/null && complain "temporaries stay: $(echo ./*.partial)"
finish
