#!/usr/bin/env bash
# Solutions, sources and modes in the files of other codes: a reader of its own finds the sums right and
# M x = b in MILC's convention; the same bytes on every rank grid, the same numbers on every way through the
# formats; as source and guess and for deflation they are what they were; what is damaged is refused.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
export OMP_NUM_THREADS=1
read_vectors() {
  python3 "$source_dir/tests/program/read_vectors.py" "$@" >/dev/null 2>read.err || complain "read_vectors $*: $(tail -1 read.err)"
}
# plain FILE: without the words that tell when and how it was made.
plain() { LC_ALL=C sed -e 's|<date>[^<]*</date>|<date>|g' -e 's/^date_utc = .*/date_utc/' "$1"; }
# equal FILE FILE: but for those words.
equal() { cmp -s <(plain "$1") <(plain "$2") || complain "$1 and $2 differ"; }

on 1 generate --dims 4x4x4x8 --start hot --seed 5 --output a.h5 --quiet || complain "generate: exit $?"
on 1 convert a.h5 a.lime --quiet || complain "convert: exit $?"
s="solve a.h5 --mass 0.2 --tol 1e-11 --quiet"
for file in x.h5 x.lime x.milc x.fnal; do
  on 1 $s --source point:1,0,2,1 --output $file || complain "$file: exit $?"
done
python_with struct zlib || { left_out "the reader of other formats: no python3"; read_vectors() { :; }; }
read_vectors solves a.lime 0.2 x.lime
read_vectors same x.lime x.milc x.fnal
refuses 2 'hdf5 files hold solutions in double, got --precision single; leave it out$' 2 convert x.lime single.h5 --precision single
on 1 $s --source wall:3 --output wall.scidac || complain "wall: exit $?"
read_vectors solves a.lime 0.2 wall.scidac

# Names of many points are whole, so that the same sources come back.
many=$(python3 -c "print('points:' + ';'.join('%d,%d,%d,%d' % (n % 4, n // 4 % 4, n // 16 % 4, n % 8) for n in range(42)))")
on 1 solve a.h5 --mass 1 --quiet --source "$many" --output many.lime || complain "42 points: exit $?"
on 1 convert many.lime many.h5 --quiet && on 1 convert many.h5 more.lime --quiet || complain "42 points: convert: exit $?"
on 1 info many.h5 --quiet --json many.json && grep -qF "\"$many\"" many.json || complain "42 points: $(key source many.json)"
read_vectors solves a.lime 1 more.lime

# Every rank grid, every way.
for way in "2 1x1x1x2" "4 2x1x2x1" "4 1x2x1x2"; do
  ranks=${way% *} grid=${way#* }
  for format in scidac milc fnal; do
    on $ranks convert x.h5 n.$format --format $format --grid $grid --quiet --force 2>err || complain "$format on $grid: $(cat err)"
  done
  equal n.scidac <(on 1 convert x.h5 one.scidac --quiet --force && cat one.scidac)
  cmp -s <(tail -c +89 n.milc) <(tail -c +89 x.milc) || complain "milc on $grid"
  cmp -s <(tail -c +37 n.fnal) <(tail -c +37 x.fnal) || complain "fnal on $grid"
done
read_vectors solves a.lime 0.2 n.scidac # its sources are those that the name says
on 2 convert x.lime back.h5 --quiet && on 1 convert back.h5 again.lime --quiet || complain "there and back: exit $?"
equal one.scidac again.lime
on 1 convert x.milc m.h5 --quiet && on 1 convert m.h5 m.fnal --quiet || complain "milc: exit $?"
cmp -s <(tail -c +37 m.fnal) <(tail -c +37 x.fnal) || complain "milc to fnal changes numbers"
on 1 convert x.lime single.lime --precision single --quiet && read_vectors same x.lime single.lime

# What a format has no place for is named.
on 1 convert x.h5 w.milc --quiet --json d.json 2>err || complain "x.h5 to milc: exit $?"
for word in mass action boundary source lattice lattice_checksum residuals tolerance; do
  key dropped d.json | grep -q "\"$word\"" || complain "milc: $word is not among what is dropped: $(key dropped d.json)"
done
grep -q 'milc files have no place for these texts, which are dropped: .*mass' err || complain "milc: $(cat err)"
for way in "x.h5 w.lime" "w.lime w.h5"; do
  on 1 convert $way --quiet --json d.json 2>err && [ ! -s err ] && [ "$(key dropped d.json)" = '[]' ] || complain "$way: $(key dropped d.json): $(cat err)"
done
on 1 convert x.milc plain.lime --quiet 2>err && grep -q 'without their sources, which x.milc does not tell' err || complain "no sources: $(cat err)"

# What h5py alone made, in the documented shape: without attributes, or in single precision. dims that do not
# fit are refused by every command.
if python_with h5py numpy; then
  python3 -c '
import h5py, numpy
with h5py.File("x.h5") as file:
    x = file["propagator/solution"][:]
for name, data, dims in ("bare", x, None), ("narrow", x.astype("complex64"), None), ("wrong", x, (4, 4, 8, 4)):
    with h5py.File(name + ".h5", "w") as file:
        file["propagator/solution"] = data
        if dims:
            file["propagator/solution"].attrs["dims"] = dims
' || complain "h5py: exit $?"
  for file in bare narrow; do
    on 1 info $file.h5 --json i.json --quiet && tr -d '\t\n ' <i.json | grep -qF '"dims":[4,4,4,8]' || complain "info $file.h5: $(key dims i.json)"
    on 2 convert $file.h5 $file.lime --quiet 2>err || complain "convert $file.h5: $(cat err)"
    on 1 $s --source point:1,0,2,1 --guess $file.h5 2>err && complain "$file.h5 as a guess says no mass"
    on 1 $s --source file:$file.h5 --json $file.json 2>err || complain "source $file.h5: $(cat err)"
  done
  read_vectors same x.lime bare.lime
  on 1 convert x.lime as_single.lime --precision single --quiet && read_vectors same as_single.lime narrow.lime
  for command in 'info wrong.h5' 'convert wrong.h5 wrong.lime' "$s --source file:wrong.h5"; do
    refuses 2 'wrong.h5: attribute dims must be the extents of /propagator/solution' 2 $command
  done
fi

# As a source: the same solve; of a solution the next solve; as a guess nothing is left to do.
on 2 $s --source file:x.lime --json f.json || complain "file source: exit $?"
on 1 $s --source point:1,0,2,1 --json p.json
[ "$(key residual_history f.json)" = "$(key residual_history p.json)" ] || complain "the source of a file is another one"
close "$(key pion_correlator f.json)" "$(key pion_correlator p.json)" 1e-9 || complain "correlator of a file source"
for file in x.h5 x.milc back.h5; do
  on 1 $s --source file:$file --json $file.json || complain "source $file: exit $?"
done
[ "$(key residual_history x.h5.json)" = "$(key residual_history back.h5.json)" ] || complain "the same solution as a source"
close "$(key pion_correlator x.h5.json)" "$(key pion_correlator x.milc.json)" 1e-4 || complain "single precision as a source"
on 1 $s --source point:1,0,2,1 --guess x.lime --json g.json || complain "guess: exit $?"
[ "$(key iterations g.json)" = 0 ] || complain "a solution as a guess takes $(key iterations g.json) iterations"

# Modes.
on 1 eigen a.h5 --modes 6 --tol 1e-9 --output m6.h5 --quiet || complain "eigen: exit $?"
on 2 convert m6.h5 m6.lime --quiet && on 1 convert m6.lime back6.h5 --quiet || complain "modes: exit $?"
on 1 convert m6.h5 m6.quda --quiet --json d.json 2>err || complain "quda: exit $?"
[ "$(key dropped d.json)" = '["residuals", "eigenvalues"]' ] && grep -q 'dropped: residuals, eigenvalues$' err || complain "quda: dropped $(key dropped d.json): $(cat err)"
refuses 2 'modes need their eigenvalues, quda files have none: m6.quda; convert the hdf5 or scidac' 2 convert m6.quda z.h5
read_vectors modes a.lime m6.lime
read_vectors sums m6.quda
for file in m6.h5 m6.lime back6.h5; do
  on 1 $s --source point:0,0,0,0 --deflate $file --json $file.json || complain "deflate $file: exit $?"
  [ "$(key residual_history $file.json)" = "$(key residual_history m6.h5.json)" ] || complain "deflated with $file: another history"
done

# info knows all that the program writes, and finds flipped bits in it.
on 1 smear a.h5 --action hisq --fat-out fat.lime --long-out long.h5 --quiet || complain "smear: exit $?"
on 1 $s --checkpoint state --checkpoint-every 5 --max-iter 20 2>/dev/null
on 1 measure --lattices a.h5 --masses 0.3 --output study.h5 --quiet --json study.json || complain "measure: exit $?"
on 1 bench copy --csv copy.csv --json copy.json --quiet || complain "bench: exit $?"
on 1 convert a.h5 a.milc --quiet 2>/dev/null && on 1 convert a.h5 a.nersc --quiet 2>/dev/null
on 1 generate --dims 4x4x4x4 --start heatbath --beta 5.7 --sweeps 2 --save-every 1 --output chain.h5 --quiet || complain "generate: exit $?"
echo '{"format": "minidirac tuning 1", "choices": []}' >tuned.json # as a GPU makes it
while read -r file content checksum ranks; do
  on ${ranks:-1} info $file --json i.json >out 2>err || complain "info $file: exit $?: $(cat err)"
  [ "$(key content i.json)" = "\"$content\"" ] || complain "info $file: content $(key content i.json), not $content"
  [ "$checksum" = - ] || [ "$(key checksum i.json)" = "\"$checksum\"" ] || complain "info $file: checksum $(key checksum i.json)"
  grep -q "^content  *$content" out || complain "info $file does not print its content"
done <<'FILES'
tuned.json choices -
a.h5 links ok
a.lime links ok
a.milc links ok
a.nersc links ok
fat.lime links ok
long.h5 links ok
chain.h5 links ok
chain.000001.h5 links ok
x.h5 solution ok
x.lime vectors ok 2
x.milc vectors ok
x.fnal vectors absent
m6.h5 modes ok 2
m6.lime modes ok
m6.quda vectors ok
state checkpoint ok
study.h5 study ok
study.json report -
copy.json report -
copy.csv table - 2
FILES
head -c -1 copy.csv >open.csv # without an end of its last line
on 1 info copy.csv --json i.json --quiet && on 1 info open.csv --json open.json --quiet && [ "$(key rows open.json)" = "$(key rows i.json)" ] || complain "open.csv: $(key rows open.json) rows"
[ "$(find . -maxdepth 1 -name '*.partial' | wc -l)" = 0 ] || complain "temporaries are left"
for file in x.h5 x.lime x.milc m6.h5 m6.lime state study.h5; do
  python3 - $file bad <<'FLIP' || complain "no flip"
import sys
data = bytearray(open(sys.argv[1], "rb").read())
for at in range(len(data) // 5, len(data), 61):
    data[at] ^= 4
open(sys.argv[2], "wb").write(data)
FLIP
  refuses 2 '(^|[^a-z])bad' 1 info bad --quiet
  head -c 3000 $file >bad
  refuses 2 'bad' 1 info bad --quiet
done
head -c 300 study.json >bad
refuses 2 'JSON is cut short' 1 info bad --quiet
cat x.milc x.milc >bad
on 1 info bad 2>&1 | grep -q 'the vectors end 36988 bytes before the file' || complain "a file that is too long"

# What info does not see it does not call whole. Data in one piece, and those of which next to nothing is
# stored, are sound.
if python_with h5py numpy; then
  python3 -c '
import h5py, numpy
zeros = numpy.zeros(9 << 20)
def study(file_name, **how):
    with h5py.File(file_name + ".h5", "w") as file:
        group = file.create_group("study")
        if how:
            group.create_dataset(how.pop("name", "x"), **how)
        for i in range(600 if file_name == "crowd" else 0):
            file.attrs["a%d" % i] = i
study("crowd", data=zeros[:9])
study("deep", data=zeros[:9], name="1/2/3/4/5/6/7/8/9")
study("hollow")
study("lump", data=zeros, chunks=zeros.shape, fletcher32=True)
study("named", data=zeros[:9], name="x@y")
study("large", data=zeros)
study("words", data=["one", "more"])
study("small", data=zeros[:4 << 20], chunks=(4 << 20,), compression=9, fletcher32=True)
' || complain "h5py: exit $?"
  for want in crowd=unread deep=unread hollow=unread lump=unread words=unread named=absent large=absent small=ok; do
    on 1 info ${want%=*}.h5 --quiet --json i.json 2>err || complain "info ${want%=*}.h5: exit $?: $(cat err)"
    [ "$(key checksum i.json)" = "\"${want#*=}\"" ] || complain "$want: checksum $(key checksum i.json)"
  done
fi

# A source alone is verified; one on a part of a lattice that no file this short fills is not read.
on 1 solve a.h5 --mass 1 --quiet --source random:7 --output r.lime && read_vectors source r.lime alone.lime
read_vectors source r.lime vast.lime "1000 1000 1000 1000"
if [ -f vast.lime ]; then
  on 1 info alone.lime --quiet --json i.json && [ "$(key checksum i.json)" = '"ok"' ] || complain "a source alone: $(key checksum i.json)"
  on 1 info vast.lime --quiet --json i.json && [ "$(key checksum i.json)" = '"unread"' ] || complain "a vast lattice: $(key checksum i.json)"
  refuses 2 'must hold 1 to 128 solutions, got 0' 1 convert alone.lime alone.h5
  refuses 2 'must hold a vector on all sites, got none' 1 convert vast.lime vast.h5
fi

# Of solutions, one on a part of the sites is left out, and the others keep their residuals.
python3 -c '
words = b"<recordtype>0<"
data = open("x.lime", "rb").read().split(words)  # the second record is the first solution
open("part.lime", "wb").write(words.join(data[:2]) + b"<recordtype>1<" + words.join(data[2:]))
' && on 1 convert part.lime part.h5 --quiet 2>err || complain "a part: exit $?: $(cat err)"
grep -q 'warning: part.lime: 1 record on a part of the sites left out' err || complain "a part: $(cat err)"
on 1 info x.h5 --quiet --json i.json && on 1 info part.h5 --quiet --json part.json || complain "a part: info: exit $?"
[ "$(key residuals part.json)" = "\"$(key residuals i.json | cut -d' ' -f2-)" ] || complain "residuals $(key residuals part.json) of a part, $(key residuals i.json) of all"

# What does not fit.
refuses 2 'a file of links is needed, the content of this one is: vectors' 1 solve x.lime --mass 1
refuses 2 'a file of links is needed, the content of this one is: modes' 1 solve m6.h5 --mass 1
refuses 2 'must hold colour vectors, its content is: links' 2 $s --source file:a.h5
on 1 generate --dims 4x4x4x4 --output cube.h5 --quiet
refuses 2 'is of a 4x4x4x8 lattice, needed is one of 4x4x4x4' 1 solve cube.h5 --mass 0.2 --source file:x.h5
refuses 2 'SOURCE|source must be' 1 $s --source file:
refuses 2 'output and --source must be different files|--source and --output must be different files' 1 $s --source file:x.lime --output x.lime --force
refuses 2 'has 3 right-hand sides, got --rhs 2' 1 $s --source file:x.lime --rhs 2
refuses 2 'takes no source of a file, got .*; use solve' 1 measure --lattices a.h5 --masses 1 --sources file:x.lime --output y.h5
refuses 2 'milc files hold 3 solutions' 1 solve none.h5 --mass 1 --source random:1 --rhs 2 --output y.milc
refuses 2 'milc files hold 3 solutions.*got 6 modes' 1 eigen none.h5 --modes 6 --output y.milc
refuses 2 'quda files hold modes' 1 solve none.h5 --mass 1 --output y.quda
refuses 2 '--format has no effect without --output FILE' 1 $s --format scidac
refuses 2 '--force has no effect without --output FILE' 1 $s --force
refuses 2 'must have no suffix that stands for links, got x.nersc; end it in .h5' 1 $s --output x.nersc
refuses 2 'format of vectors must be named.* end it in .h5, .* .scidac, .milc, .ks' 1 convert x.lime y.nersc
refuses 2 'links, solutions or modes can be converted.*study' 1 convert study.h5 y.lime
refuses 2 "must be one of links, 'scidac' is none; use --format hdf5" 1 convert a.h5 z.lime --format scidac
refuses 2 "must be one of vectors, 'nersc' is none; use --format .*.fnal.quda$" 1 convert x.lime z.lime --format nersc
refuses 2 '--ignore-checksum is for links, x.lime holds vectors; leave it out' 2 convert x.lime z.h5 --ignore-checksum
refuses 2 'x.milc: attribute plaquette is missing; give the solution as hdf5 or scidac' 2 $s --guess x.milc
finish
