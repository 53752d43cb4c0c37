#!/usr/bin/env bash
# minidirac smear: its report and files, info on them, the same on several ranks, and refusals.
. "$(dirname "$0")/common.sh"
lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
fat=$work/fat.h5
long=$work/long.lime

on 1 smear --action hisq "$lattice" --fat-out "$fat" --long-out "$long" --json "$work/one.json" --quiet \
  || complain "smear: exit $?"
grep -q '"name":.*"W"' "$work/one.json" || complain "the report has no kind W"
[ "$(key projections "$work/one.json")" = 2048 ] || complain "projections: $(key projections "$work/one.json")"
[ "$(key projections_by_singular_values "$work/one.json")" = 0 ] || complain "fall-backs on a smooth lattice"
close "$(grep -A1 '"V"' "$work/one.json" | sed -n 's/.*"plaquette":\t*\(.*\),/\1/p')" 0.115996181400451 1e-12 \
  || complain "plaquette of V: $(grep -A1 '"V"' "$work/one.json")"

# The same numbers and files on two ranks.
on 2 smear --action hisq "$lattice" --fat-out "$work/fat2.h5" --long-out "$work/long2.lime" --json "$work/two.json" \
  --quiet || complain "smear on 2 ranks: exit $?"
for name in plaquette link_trace norm2; do
  [ "$(key $name "$work/one.json")" = "$(key $name "$work/two.json")" ] || complain "$name differs on two ranks"
done
# What the files say of themselves.
for n in "" 2; do
  on 1 info "$work/fat$n.h5" --json "$work/fat$n.json" --quiet || complain "info on fat links: exit $?"
  on 1 info "$work/long$n.lime" --json "$work/long$n.json" --quiet || complain "info on long links: exit $?"
done
for file in fat long; do
  [ "$(key links "$work/$file.json")" = "\"$file\"" ] || complain "info: links are $(key links "$work/$file.json")"
  [ "$(key made "$work/$file.json")" = '"hisq, naik-epsilon 0"' ] || complain "info: made $(key made "$work/$file.json")"
  [ "$(key phases "$work/$file.json")" = '"none"' ] || complain "info: phases $(key phases "$work/$file.json")"
  [ "$(key checksum_computed "$work/$file.json")" = "$(key checksum_computed "$work/${file}2.json")" ] \
    || complain "$file links differ on two ranks"
done
[ "$(key format "$work/long.json")" = '"scidac"' ] || complain "long links are not in a SciDAC file"
on 1 convert "$fat" "$work/copy.lime" --quiet --json "$work/convert.json" || complain "convert: exit $?"
[ "$(key format "$work/convert.json")" = '"scidac"' ] || complain "convert: format $(key format "$work/convert.json")"
on 1 info "$work/copy.lime" --json "$work/copy.json" --quiet
[ "$(key made "$work/copy.json")" = '"hisq, naik-epsilon 0"' ] || complain "convert lost what the links are"
# Reports of files in single precision have the means of the links that were written.
of_kind() { grep -A4 "\"name\":.*\"$1\"" "$work/$3" >"$work/kind" && key "$2" "$work/kind"; }
on 2 smear --action hisq "$lattice" --precision single --fat-out "$work/fat4.h5" --long-out "$work/long4.lime" \
  --json "$work/four.json" --quiet || complain "smear in single precision: exit $?"
on 2 convert "$fat" "$work/copy4.lime" --precision single --json "$work/convert4.json" --quiet || complain "convert to single: exit $?"
for file in fat4.h5 long4.lime copy4.lime; do
  on 1 info "$work/$file" --json "$work/${file%.*}.json" --quiet || complain "info on $file: exit $?"
done
for name in plaquette link_trace; do
  [ "$(of_kind X $name four.json)" = "$(key $name "$work/fat4.json")" ] || complain "$name of X: $(of_kind X $name four.json)"
done
[ "$(of_kind L link_trace four.json)" = "$(key link_trace "$work/long4.json")" ] || complain "L: $(of_kind L link_trace four.json)"
[ "$(of_kind L plaquette four.json)" = null ] || complain "a plaquette of long links: $(of_kind L plaquette four.json)"
[ "$(of_kind X plaquette four.json)" != "$(of_kind X plaquette one.json)" ] || complain "nothing was rounded"
[ "$(key plaquette "$work/convert4.json")" = "$(key plaquette "$work/copy4.json")" ] || complain "convert: $(key plaquette "$work/convert4.json")"
on 1 smear --action stout --steps 2 "$lattice" --fat-out "$work/stout.nersc" --quiet 2>"$work/err" || complain "stout: exit $?"
grep -q 'stout.nersc: nersc files have no place for these texts, which are dropped: made$' "$work/err" || complain "stout: $(cat "$work/err")"
on 1 smear --action stout "$lattice" --fat-out "$work/stout.milc" --precision single --quiet 2>"$work/err" || complain "stout, milc: exit $?"
grep -q 'which are dropped: made, minidirac thin_links$' "$work/err" || complain "stout, milc: $(cat "$work/err")"
on 1 smear --action ape "$work/stout.nersc" --fat-out "$work/ape.h5" --quiet || complain "stout links are no lattice"

# Refusals: nothing is overwritten.
sum=$(cksum <"$fat")
s="smear --action hisq $lattice"
refuses 2 'replaces no file, but .* is there; add --force' 1 $s --fat-out "$fat"
refuses 2 'replaces no file, but .* is there; add --force' 2 $s --fat-out "$work/new.h5" --long-out "$long"
[ ! -e "$work/new.h5" ] || complain "the fat links were written before the long ones were refused"
refuses 2 'replaces no file, but .* is there; add --force' 1 smear --action hisq /nowhere --fat-out "$fat"
[ "$sum" = "$(cksum <"$fat")" ] || complain "a refusal changed $fat"
on 1 $s --naik-epsilon 0.5 --fat-out "$fat" --force --quiet || complain "--force: exit $?"
[ "$sum" != "$(cksum <"$fat")" ] || complain "--force did not replace $fat"
refuses 2 'smear needs --action' 1 smear "$lattice" --fat-out "$work/x.h5"
refuses 2 'smear needs --fat-out' 1 smear --action hisq "$lattice"
refuses 2 'must be one of asqtad\|hisq' 1 smear --action hyp "$lattice" --fat-out "$work/x.h5"
refuses 2 'must be different files' 1 $s --fat-out "$work/x.h5" --long-out "$work/x.h5"
refuses 2 'hisq takes no --u0' 1 $s --u0 0.9 --fat-out "$work/x.h5"
refuses 2 'ape has no long links' 1 smear --action ape "$lattice" --fat-out "$work/x.h5" --long-out "$work/y.h5"
refuses 2 'NERSC files hold links in SU\(3\)' 1 $s --fat-out "$work/x.nersc"
refuses 2 '--u0 must lie in' 1 smear --action asqtad --u0 0 "$lattice" --fat-out "$work/x.h5"
refuses 2 'the format must be named' 1 $s --fat-out "$work/x"
refuses 2 'the file says that its links are fat' 1 smear --action ape "$fat" --fat-out "$work/x.h5"
refuses 2 'the file says that its links are fat' 2 solve --lattice "$fat" --mass 0.1
if python_with h5py; then # whose texts have no fixed length
  cp "$fat" "$work/again.h5"
  written() {
    python3 -c '
import h5py, sys
with h5py.File(sys.argv[1], "r+") as file:
    about = file["gauge/links"].attrs
    about["made"], about["links"] = sys.argv[3], sys.argv[2]
    file["gauge/texts"].attrs["run"] = 7
' "$work/again.h5" "$@" || complain "h5py: exit $?"
  }
  written fat 'hisq, by hand'
  refuses 2 'the file says that its links are fat' 2 solve --lattice "$work/again.h5" --mass 0.1
  on 1 info "$work/again.h5" | grep -q '^links  *fat, hisq, by hand$' || complain "a label of h5py: $(on 1 info "$work/again.h5" | grep '^links')"
  on 1 info "$work/again.h5" | grep -q '^  run: 7$' || complain "a number among the texts is lost"
  written 'fat links of HISQ' hisq
  refuses 2 'again.h5: attribute links must be a text of at most 15 bytes' 1 solve --lattice "$work/again.h5" --mass 0.1
fi
on 1 convert "$fat" "$work/fat.milc" --format milc --quiet --json "$work/milc.json" 2>"$work/err" # a format without a label
grep -q 'milc files have no place for these texts, which are dropped: made, links, ' "$work/err" && key dropped "$work/milc.json" | grep -q '"made", "links"' || complain "what convert drops: $(key dropped "$work/milc.json"): $(cat "$work/err")"
on 1 smear --action ape "$work/fat.milc" --fat-out "$work/x.h5" >"$work/out" 2>"$work/err"
[ $? = 2 ] || complain "fat links without a label were smeared"
grep -q 'thin links must be in SU(3) within 0.0001, their largest deviation' "$work/err" || complain "$(cat "$work/err")"
refuses 2 'thin links must be in SU\(3\) within 0.0001, their largest deviation' 1 generate --from "$work/fat.milc" --sweeps 1 -o "$work/x.h5"
refuses 2 'MILC files hold single precision, got double; use --precision single' 1 $s --fat-out "$work/x.h5" --long-out "$work/y.milc"
[ ! -e "$work/x.h5" ] || complain "a refused run wrote a file"
# Plaquettes of fat links may be large, and are known to a part of that.
on 1 smear --action asqtad --u0 0.35 "$lattice" --fat-out "$work/large.h5" --precision single --quiet || complain "large links: exit $?"
on 1 convert "$work/large.h5" "$work/large.lime" --quiet || complain "large links: convert: exit $?"
for file in large.h5 large.lime; do
  on 2 info "$work/$file" --quiet 2>"$work/err" && [ ! -s "$work/err" ] || complain "$file: $(cat "$work/err")"
done
# A long file that comes to be meanwhile stays, and the report names what was written; a fast run may win.
for try in 1 2 3 4 5; do
  rm -f "$work/half".*
  on 1 smear --action hisq "$source_dir/inputs/beta6.0_8x8x8x8.h5" --threads 1 --fat-out "$work/half.h5" --long-out "$work/half.lime" \
    --json "$work/half.json" >"$work/half.out" 2>"$work/err" &
  job=$!
  until [ -s "$work/half.out" ] || ! kill -0 $job 2>/dev/null; do sleep 0.01; done
  echo theirs >"$work/half.lime"
  wait $job
  got=$?
  [ $got = 0 ] || break
done
if [ $got != 0 ]; then
  [ $got = 3 ] && [ "$(cat "$work/half.lime")" = theirs ] || complain "half a result: exit $got: $(cat "$work/err")"
  [ -n "$(key fat_out "$work/half.json")" ] && [ -z "$(key long_out "$work/half.json")" ] || complain "half a result: $(cat "$work/half.json")"
fi
on 1 $s --on gpu --fat-out "$work/gpu.h5" >"$work/out" 2>"$work/err" # a GPU is there or named as missing
case $? in
0) [ -e "$work/gpu.h5" ] || complain "--on gpu wrote nothing" ;;
3) [ "$(grep -c '^minidirac: error: ' "$work/err")" = 1 ] || complain "--on gpu: $(cat "$work/err")" ;;
*) complain "--on gpu: $(cat "$work/err")" ;;
esac
finish
