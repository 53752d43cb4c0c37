#!/usr/bin/env bash
# --reunitarize: links of single precision in 12 reals take no more iterations than in 18; who is told of it, who is
# refused, and that the lattice stays the file's.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
on 1 convert "$source_dir/inputs/beta6.0_8x8x8x8.h5" s.h5 --precision single --quiet || complain "convert"
s="solve s.h5 --mass 0.02 --source random:1 --threads 1"
hint='warning: .*12 reals costs iterations; --reunitarize'

# iterations NAME RANKS ARGUMENTS...: of the solve, whose report is NAME.json and whose messages are NAME.err.
iterations() {
  local name=$1 ranks=$2
  shift 2
  on "$ranks" "$@" --json $name.json --quiet 2>$name.err || complain "$*: exit $?, $(cat $name.err)"
  key iterations $name.json
}
whole=$(iterations whole 1 $s)
rounded=$(iterations rounded 1 $s --reconstruct 12)
projected=$(iterations projected 1 $s --reconstruct 12 --reunitarize)
printf 'lattice = s.h5\nmass = 0.02\nsource = random:1\nreconstruct = 12\nreunitarize = true\n' >deck.ini
deck=$(iterations deck 2 solve --config deck.ini --threads 1)
[ "$rounded" -gt $((whole * 5 / 4)) ] || complain "rounded links take $rounded iterations, in 18 reals $whole"
[ "$projected" -le $((whole + whole / 50 + 1)) ] || complain "projected links take $projected iterations, in 18 reals $whole"
[ "$deck" = "$projected" ] || complain "by a deck on two ranks: $deck iterations, not $projected"
[ "$(key reunitarized projected.json)" = true ] || complain "report: reunitarized"
awk -v x="$(key largest_link_change projected.json)" 'BEGIN { exit !(x > 1e-9 && x < 3e-7) }' ||
  complain "report: largest_link_change $(key largest_link_change projected.json)"
[ "$(key plaquette projected.json)" = "$(key plaquette whole.json)" ] || complain "another plaquette"
grep -q reunitarized rounded.json && complain "reunitarized without being asked"
grep -qE "$hint" rounded.err || complain "no hint: $(cat rounded.err)"
[ -s projected.err ] || [ -s whole.err ] && complain "a hint for nothing: $(cat projected.err whole.err)"
iterations inner 1 $s --reconstruct 12 --inner single >/dev/null
[ -s inner.err ] && complain "a hint for iterations in single: $(cat inner.err)"

# Links that are none of SU(3), in a format that cannot say so.
on 1 smear s.h5 --action hisq --fat-out fat.h5 --long-out long.h5 --quiet && on 1 convert fat.h5 fat.milc --quiet 2>/dev/null ||
  complain "fat links: exit $?"
for command in 'solve fat.milc --mass 0.1' 'measure --lattices fat.milc --masses 0.1 --output f.h5'; do
  refuses 2 'links of 12 reals must be in SU.3. within 0.0001, their largest deviation is .*; use --reconstruct 18' 2 \
    $command --reconstruct 12 --quiet
  for with in '--inner fixed' '--precision fixed --tol 1e-2'; do
    refuses 2 'links in fixed must be in SU.3. within 0.0001, their largest deviation is .*; use half' 2 $command $with --quiet
  done
done

# Every command that loads thin links.
on 1 measure --lattices s.h5 --masses 0.5 --reconstruct 12 --output m.h5 --quiet 2>err || complain "measure: exit $?"
grep -qE "$hint" err || complain "measure has no hint: $(cat err)"
on 1 eigen s.h5 --modes 4 --tol 1e-6 --reunitarize --output modes.h5 --quiet --json eigen.json || complain "eigen: exit $?"
on 1 measure --lattices s.h5 --masses 0.5 --reconstruct 12 --reunitarize --deflate modes.h5 --output n.h5 --quiet \
  --json measure.json 2>err || complain "measure: exit $?, $(cat err)"
on 1 smear s.h5 --action hisq --fat-out f.h5 --long-out l.h5 --reunitarize --quiet --json smear.json || complain "smear"
on 1 validate s.h5 --backend cpu_simd --precision double --reunitarize --quiet --json validate.json || complain "validate"
on 1 bench solver --lattice s.h5 --mass 0.5 --operators cpu_simd --inner none --repetitions 1 --reunitarize --quiet \
  --json bench.json || complain "bench solver"
for name in eigen measure smear validate bench; do
  [ "$(key reunitarized $name.json)" = true ] || complain "report of $name: reunitarized"
done

# Modes and results are of links that were projected, or of those that were not.
on 1 solve s.h5 --mass 0.02 --reunitarize --deflate modes.h5 --quiet || complain "modes of projected links: exit $?"
refuses 2 'reunitarized' 1 solve s.h5 --mass 0.02 --deflate modes.h5
refuses 2 'n.h5' 1 measure --lattices s.h5 --masses 0.5 --reconstruct 12 --deflate modes.h5 --output n.h5 --resume
on 1 solve f.h5 --quiet --mass 0.5 2>/dev/null && complain "fat links as thin ones"

# What is no rounding is refused: fat links in a file that has no label, files that are known to be fat.
on 1 convert f.h5 f.milc --format milc --quiet 2>err || complain "convert to milc: $(cat err)"
on 1 solve f.milc --mass 0.5 --reunitarize --quiet 2>err
[ $? = 2 ] && grep -q 'error: f.milc: --reunitarize is for SU(3) links that were rounded.*fat links' err ||
  complain "fat links: $(cat err)"
refuses 2 '--reunitarize is for thin links' 1 solve --action hisq --fat f.h5 --long l.h5 --mass 0.5 --reunitarize
refuses 2 '--reunitarize is for the links of --lattice' 1 bench solver --dims 4x4x4x4 --mass 0.5 --reunitarize
finish
