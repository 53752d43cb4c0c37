#!/usr/bin/env bash
# Improved actions in solve, validate and the benchmarks: known correlators, the same bits on every
# rank count and through files of links, what reports say, and what is refused.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/golden_correlators.sh"
export OMP_NUM_THREADS=1 # small lattices
fat=$work/fat.h5
long=$work/long.lime
any="solve --mass 0.1 --quiet" # links that a GPU makes differ by rounding
s="$any --backend cpu_simd"

# Thin links in, correlator out; and the same through files.
hisq="--action hisq --naik-epsilon 0.2"
for ranks in 1 2 4; do
  on $ranks $s --lattice "$own_lattice" $hisq --json "$work/$ranks.json" || complain "hisq on $ranks ranks: exit $?"
done
close "$(key pion_correlator "$work/1.json")" "$own_hisq_correlator" 1e-9 || complain "hisq: $(key pion_correlator "$work/1.json")"
on 1 $s --lattice "$own_lattice" --action asqtad --u0 0.9 --json "$work/asqtad.json" || complain "asqtad: exit $?"
close "$(key pion_correlator "$work/asqtad.json")" "$own_asqtad_correlator" 1e-9 ||
  complain "asqtad: $(key pion_correlator "$work/asqtad.json")"
on 2 smear $hisq "$own_lattice" --fat-out "$fat" --long-out "$long" --quiet || complain "smear: exit $?"
files="--action hisq --fat $fat --long $long"
on 1 $s $files --json "$work/files1.json" || complain "links of files: exit $?"
on 2 $s $files --lattice "$own_lattice" --json "$work/files2.json" || complain "links of files on 2 ranks: exit $?"
for report in 2 4 files1 files2; do
  for k in residual_history pion_correlator iterations; do
    [ "$(key $k "$work/1.json")" = "$(key $k "$work/$report.json")" ] || complain "$k differs in $report.json"
  done
done
# Other iterations and backends, the same answer.
for way in "--backend auto" "--inner half" "--solver block" "--backend cpu_ref" "--backend tensor_emu --packing stacked"; do
  on 1 $any --lattice "$own_lattice" $hisq $way --json "$work/way.json" || complain "$way: exit $?"
  close "$(key pion_correlator "$work/way.json")" "$own_hisq_correlator" 1e-8 || complain "$way: $(key pion_correlator "$work/way.json")"
done
on 1 $s --lattice "$own_lattice" $hisq --solver multishift --shifts 0.1,0.3 --json "$work/way.json" || complain "multishift: exit $?"

# What reports say.
says() { [ "$(key "$1" "$work/$2.json")" = "$3" ] || complain "$1 in $2.json is '$(key "$1" "$work/$2.json")', not '$3'"; }
says action 1 '"hisq"'
says naik_epsilon 1 0.2
says projections 1 2048
says projections_by_singular_values 1 0
says u0 asqtad 0.9
says action files1 '"hisq"'
says fat_file files1 "\"$fat\""
says fat_phases files1 '"none"'
says long_boundary files1 '"periodic"'
says lattice files1 ''
says naik_epsilon files1 ''
says plaquette files2 "$(key plaquette "$work/1.json")"

# A checkpoint belongs to an action with its parameters.
on 1 $s --lattice "$own_lattice" $hisq --checkpoint "$work/c.h5" --checkpoint-every 10 --max-iter 25 2>/dev/null
refuses 2 'must belong to this solve' 1 $s --lattice "$own_lattice" --action hisq --checkpoint "$work/c.h5" --resume
on 1 $s --lattice "$own_lattice" $hisq --checkpoint "$work/c.h5" --resume --json "$work/resumed.json" || complain "resume: exit $?"
[ "$(key pion_correlator "$work/1.json")" = "$(key pion_correlator "$work/resumed.json")" ] || complain "resumed: another correlator"

# Every precision within its bounds, links of fewer reals named with the reason.
on 1 validate $files --backend cpu_simd --max-iter 5 --json "$work/v.json" >"$work/out" || complain "validate: exit $?"
says broken_bounds v 0
for word in half bf16 fixed single; do
  grep -q "\"precision\":.*\"$word\"" "$work/v.json" || complain "validate: no $word"
done
grep -q 'cpu_simd .*not checked: links of 12 reals must be in SU(3)' "$work/out" || complain "validate: no reason for 12 reals"

# The benchmarks count the flops and bytes of the action: 16 matrices of 18 reals and two vectors of 6.
on 1 bench dirac --dims 4x4x4x4 --action asqtad --backends cpu_simd --precisions double --rhs 1 --repetitions 1 \
  --json "$work/b.json" >"$work/out" || complain "bench dirac: exit $?"
says site_bytes b $((8 * (16 * 18 + 2 * 6)))
says site_bytes_no_reuse b $((8 * (16 * 18 + 17 * 6)))
awk -v g="$(key gflops "$work/b.json")" -v t="$(key seconds_median "$work/b.json")" \
  'BEGIN { f = g * 1e9 * t / 128; exit !(f > 1145.9 && f < 1146.1) }' || complain "bench dirac: flops of a site"
grep -q '^flops  *1146 per site' "$work/out" || complain "bench dirac: head of the table"
on 1 bench solver $files --mass 0.5 --operators cpu_simd --inner none,half --repetitions 1 --tol 1e-8 --quiet \
  --json "$work/bs.json" || complain "bench solver: exit $?"
says action bs '"hisq"'

# Refusals.
l="$own_lattice"
refuses 2 '--action must be one of naive\|asqtad\|hisq' 1 $s "$l" --action fat7
refuses 2 '--action naive takes no --u0' 1 $s "$l" --u0 0.9
refuses 2 '--action hisq takes no --u0' 2 $s "$l" --action hisq --u0 0.9
refuses 2 '--action asqtad takes no --naik-epsilon' 1 validate "$l" --action asqtad --naik-epsilon 0.1
refuses 2 '--u0 must lie in' 1 $s "$l" --action asqtad --u0 0
refuses 2 'need each other, got --fat alone' 1 $s "$l" --action hisq --fat "$fat"
refuses 2 'need each other, got --long alone' 1 bench dirac --action hisq --long "$long"
refuses 2 '--action naive has no fat and long links' 1 $s --fat "$fat" --long "$long"
refuses 2 '--naik-epsilon is for links that are made here' 1 $s $files --naik-epsilon 0.2
refuses 2 "asqtad is asked for, the file says that its links are 'hisq, naik-epsilon 0.2'" 2 $s --action asqtad --fat "$fat" --long "$long"
refuses 2 'long links are asked for, the file says that its links are fat' 1 $s --action hisq --fat "$fat" --long "$fat"
on 1 smear --action hisq "$l" --fat-out "$work/other.h5" --long-out "$work/other.lime" --quiet
refuses 2 'fat and long links must be of one kind' 1 $s --action hisq --fat "$fat" --long "$work/other.lime"

# Links of two lattices: files of either format, copies of them, and a lattice beside them.
on 1 generate --dims 4x4x4x8 --start hot --seed 5 --output "$work/cfg.h5" --quiet || complain "generate: exit $?"
on 1 smear $hisq "$work/cfg.h5" --fat-out "$work/alien.h5" --long-out "$work/alien.lime" --quiet || complain "smear: exit $?"
for copy in fat.h5 alien.h5; do
  on 1 convert "$work/$copy" "$work/${copy%.h5}.copy.lime" --quiet || complain "convert: exit $?"
done
for to in 'cfg.milc --format milc' 'cfg.lime --precision single' 'cfg.nersc'; do
  on 1 convert "$work/cfg.h5" "$work/"$to --quiet 2>"$work/err" || complain "convert to $to: $(cat "$work/err")"
done
# A file of another code, and one that says its lattice as files did before they said its links.
if python_with h5py numpy; then
  python3 -c '
import h5py, sys
for name in "fat", "alien":
    with h5py.File(f"{sys.argv[1]}/{name}.h5") as old, h5py.File(f"{sys.argv[1]}/{name}.old.h5", "w") as new:
        old.copy("gauge", new)
        del new["gauge/texts"]
    with h5py.File(f"{sys.argv[1]}/{name}.h5") as old, h5py.File(f"{sys.argv[1]}/{name}.silent.h5", "w") as new:
        new["gauge/links"] = old["gauge/links"][()]
' "$work" || complain "h5py: exit $?"
fi
foreign() { # command, and the fat links and lattice that are not those of the long ones
  refuses 2 "must be of one lattice, but that of .*${2##*/} has the checksum '[0-9a-f ]+' and that of .*${3##*/} '[0-9a-f ]+'" \
    1 $1 --action hisq --fat "$2" --long "$long" ${4:+--lattice "$4"}
}
for copy in "$work"/alien.h5 "$work"/alien.copy.lime; do
  foreign "$s" "$copy" "$long"
done
[ ! -e "$work/alien.silent.h5" ] || {
  refuses 2 'must be of one lattice' 2 $s --action hisq --fat "$work/alien.old.h5" --long "$long" --lattice "$l"
  on 1 $s --action hisq --fat "$work/fat.old.h5" --long "$long" --lattice "$l" 2>"$work/err" || complain "links of the lattice's checksum: $(cat "$work/err")"
  [ ! -s "$work/err" ] || complain "links of the lattice's checksum: $(cat "$work/err")"
  for alien in alien.silent alien.old; do # cannot be compared with what a LIME file says
    on 1 $s --action hisq --fat "$work/$alien.h5" --long "$long" 2>"$work/err" || complain "$alien: $(cat "$work/err")"
    grep -q "warning: .*$alien.h5 and .*long.lime do not both say" "$work/err" || complain "$alien: $(cat "$work/err")"
  done
}
refuses 2 "cfg.h5 has the checksum '[0-9a-f]+' and that of .*fat.h5 '[0-9a-f]+'" 2 $s $files --lattice "$work/cfg.h5"
for command in "eigen --modes 2 --quiet" "validate --backend cpu_simd --quiet" "bench dirac --quiet" "bench solver --mass 1 --quiet"; do
  foreign "$command" "$work/alien.h5" "$long"
done
for command in "eigen --modes 2 --quiet" "validate --backend cpu_simd --quiet"; do
  refuses 2 'must be of one lattice' 1 $command $files --lattice "$work/cfg.h5"
done
on 1 $s --action hisq --fat "$work/alien.h5" --long "$long" --ignore-checksum 2>"$work/err" || complain "--ignore-checksum: $(cat "$work/err")"
grep -q 'warning: .*must be of one lattice.*(ignored)' "$work/err" || complain "--ignore-checksum: $(cat "$work/err")"
# Copies of one lattice are one, whatever their format and precision.
for lattice in cfg.h5 cfg.milc cfg.lime cfg.nersc; do
  on 1 $s --action hisq --fat "$work/alien.copy.lime" --long "$work/alien.lime" --lattice "$work/$lattice" 2>"$work/err" ||
    complain "links of a copy of $lattice: $(cat "$work/err")"
done
on 1 smear --action fat7 "$l" --fat-out "$work/fat7.h5" --quiet
refuses 2 "hisq is asked for, the file says that its links are 'fat7" 1 $s --action hisq --fat "$work/fat7.h5" --long "$long"

refuses 2 'the extents must be 8 x 8 x 8 x 8' 1 $s $files --lattice "$source_dir/inputs/beta6.0_8x8x8x8.h5"
refuses 2 'thin links are asked for, the file says that its links are fat' 1 $s --action hisq --lattice "$fat"
refuses 2 'links of 12 reals must be in SU\(3\), those of action hisq are not' 1 $s $files --reconstruct 12
refuses 2 'no backend of this build serves --backend cpu_simd .*: links of 12 reals must be in SU' 1 validate $files \
  --backend cpu_simd --reconstruct 12
refuses 2 'links of 13 reals are the long ones of asqtad and hisq, action naive has none' 1 $s "$l" --reconstruct 13
refuses 2 'links of 9 reals .* action naive has none' 1 validate "$l" --backend cpu_simd --reconstruct 9
refuses 2 'backend cpu_simd does not serve links of 13 reals' 1 $s $files --reconstruct 13
refuses 2 'links of 9 reals must be without phases, which --imaginary-mu' 1 $s $files --reconstruct 9 --imaginary-mu 0.1
refuses 2 'leave --dims out' 1 bench dirac $files --dims 4x4x4x4
refuses 2 'solve needs --lattice .*or --fat FILE and --long FILE' 1 $s
refuses 2 'one of the two' 1 bench solver $files --dims 4x4x4x4
refuses 2 'not-there.h5 cannot be read' 2 $s --action hisq --fat "$work/not-there.h5" --long "$long"
finish
