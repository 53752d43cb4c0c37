#!/usr/bin/env bash
# What lattice files say in words goes from format to format, or is named as dropped; info shows it.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
export OMP_NUM_THREADS=1
# said FILE NAME: the text of that name.
said() {
  on 1 info "$1" --json i.json --quiet && sed -n '/"texts"/,$p' i.json >t.json && key "$2" t.json | sed 's/^"//; s/"$//'
}
# converts IN OUT: without a word.
converts() { on "${ranks:-1}" convert "$1" "$2" --quiet --json c.json 2>err || complain "$1 to $2: exit $?: $(cat err)"; }

LC_ALL=C sed -e 's/^ENSEMBLE_ID = .*/ENSEMBLE_ID = quenched b5.9/' -e 's/^ENSEMBLE_LABEL.*/&\nCREATION_DATE = 12 May 2003/' \
  -e 's/^SEQUENCE_NUMBER.*/SEQUENCE_NUMBER = 417/' "$source_dir/inputs/beta5.9_6x4x8x10.nersc" >a.nersc
converts a.nersc b.h5
ranks=2 converts b.h5 c.lime
ranks=2 converts c.lime d.h5
converts d.h5 e.nersc
for file in b.h5 c.lime d.h5 e.nersc; do
  [ "$(said $file 'nersc ENSEMBLE_ID')" = 'quenched b5.9' ] || complain "$file: ensemble '$(said $file 'nersc ENSEMBLE_ID')'"
  [ "$(said $file 'nersc SEQUENCE_NUMBER')" = 417 ] || complain "$file: sequence number"
done
grep -a -q '^ENSEMBLE_ID = quenched b5.9$' e.nersc || complain "no ENSEMBLE_ID line"
grep -a -q '^CREATION_DATE = 12 May 2003$' e.nersc || complain "no CREATION_DATE line"
[ "$(grep -a -c '^SEQUENCE_NUMBER' e.nersc)" = 1 ] || complain "two lines of SEQUENCE_NUMBER"
# Our own files say of what they were made; the next file says that of its source.
[ "$(said b.h5 lattice)" = a.nersc ] || complain "b.h5: source '$(said b.h5 lattice)'"
[ "$(said c.lime 'source lattice')" = a.nersc ] || complain "c.lime: '$(said c.lime 'source lattice')'"
said b.h5 command_line | grep -q 'convert a.nersc b.h5' || complain "b.h5: command line '$(said b.h5 command_line)'"
grep -q 'dropped: .*source command_line' err || complain "NERSC: nothing was dropped: $(cat err)"
grep -q '"dropped":.*"source lattice"' c.json || complain "the report names nothing dropped"

# Lines that say the usual value under another key stay, and so does an unusual boundary. What is too much
# for a header is named.
LC_ALL=C sed -e "s/^BOUNDARY_4.*/BOUNDARY_4 = ANTIPERIODIC/" -e "s/^SEQUENCE_NUMBER.*/&\nKAPPA = 0\nGAUGE_FIX = none\n$(printf 'K%.0s' {1..100}) = v/" a.nersc >f.nersc
converts f.nersc g.h5
converts g.h5 h.nersc
for line in "BOUNDARY_4 = ANTIPERIODIC" "KAPPA = 0" "GAUGE_FIX = none" "K\{100\} = v"; do
  [ "$(grep -a -c "^$line$" h.nersc)" = 1 ] || complain "not one line $line"
done
[ "$(grep -a -c '^BOUNDARY_' h.nersc)" = 4 ] || complain "boundaries: $(grep -a '^BOUNDARY_' h.nersc)"
value=$(printf 'v%.0s' {1..100})
lines=$(for i in {100..640}; do printf 'K%d = %s\\n' $i "$value"; done)
LC_ALL=C sed -e "s/^SEQUENCE_NUMBER.*/$lines&/" a.nersc >f.nersc
converts f.nersc i.nersc
here=$(grep -a -c "^K... = $value$" i.nersc)
[ "$here" -gt 450 ] && [ "$(key dropped c.json | grep -o '"nersc K[0-9]*"' | wc -l)" = $((541 - here)) ] || complain "$here of 541 lines, dropped: $(key dropped c.json)"
grep -q "dropped: .* and [0-9]* more$" err || complain "many lines: $(cat err)"
LC_ALL=C sed -e "s/^SEQUENCE_NUMBER.*/&\n$(printf 'K%.0s' {1..130}) = v/" a.nersc >f.nersc
converts f.nersc j.nersc
grep -q '1 record of no text, or too long, left out' err || complain "a long key: $(cat err)"

# A logical file name; a text that MILC files have no place for; their own time stamp.
LC_ALL=C sed 's|lfn://unregistered/miniDirac|lfn://test/quenched/b5.7/001|' "$source_dir/inputs/beta5.7_4x4x4x8.lime" >l.lime
converts l.lime m.h5
converts m.h5 n.lime
[ "$(said n.lime ildg-data-lfn)" = 'lfn://test/quenched/b5.7/001' ] || complain "LFN '$(said n.lime ildg-data-lfn)'"
on 1 info n.lime | grep -q 'ildg-data-lfn: lfn://test/quenched/b5.7/001' || complain "info does not print the LFN"
on 1 convert n.lime o.milc --format milc --quiet 2>err || complain "to MILC: exit $?"
grep -q 'no place for these texts.*ildg-data-lfn' err || complain "MILC: $(cat err)"
stamp=$(said o.milc 'milc time_stamp')
[ -n "$stamp" ] || complain "no time stamp"
cp o.milc long.milc && printf 'A%.0s' {1..64} | dd of=long.milc bs=1 seek=20 conv=notrunc 2>dd.err || complain "dd: $(cat dd.err)"
converts long.milc longer.milc
[ "$(said longer.milc 'milc time_stamp' | wc -c)" = 65 ] || complain "a stamp of 64: '$(said longer.milc 'milc time_stamp')'"
sleep 1
on 1 convert o.milc p.milc --format milc --quiet
[ "$(said p.milc 'milc time_stamp')" = "$stamp" ] || complain "another time stamp"
finish
