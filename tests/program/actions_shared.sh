#!/usr/bin/env bash
# Correlators that the MILC code prints for HISQ and asqtad, from its sample lattice by the command
# (../shared/hisq.md), and fat and long links as MILC wrote them. Skipped where the files are absent.
. "$(dirname "$0")/common.sh"
shared=${MINIDIRAC_SHARED_LATTICES:-}
[ -f "$shared/lat.sample.l4448.gf" ] && [ -f "$shared/fat.l8" ] || exit 77
hisq='[1.59174071439, 0.756932165707, 0.773457898327, 0.561252284656, 0.484802155718, 0.350436600618, 0.467375453595, 0.61228081908]'
asqtad='[3.0438413599, 1.23378071261, 1.2876976659, 0.88195187545, 0.743703252486, 0.559135030244, 0.84242374754, 1.16533387932]'
for action in hisq asqtad; do
  for way in "--backend cpu_simd" "--backend cpu_simd --inner single"; do
    on 1 solve "$shared/lat.sample.l4448.gf" --action $action --mass 0.05 --boundary periodic --tol 1e-11 $way \
      --quiet --json "$work/s.json" || complain "$action $way: exit $?"
    close "$(key pion_correlator "$work/s.json")" "${!action}" 1e-6 || complain "$action $way: $(key pion_correlator "$work/s.json")"
  done
done
# A study of both actions, by multi-shift and by deflated CG.
for action in hisq asqtad; do
  on 1 eigen "$shared/lat.sample.l4448.gf" --action $action --boundary periodic --modes 16 --tol 1e-8 --output "$work/$action.h5" --quiet ||
    complain "eigen: exit $?"
done
for way in "--masses 0.05,0.1" "--masses 0.05 --deflate $work/{action}.h5"; do
  on 2 measure --lattices "$shared/lat.sample.l4448.gf" --actions hisq,asqtad --boundary periodic --tol 1e-11 $way \
    --output "$work/study.h5" --force --quiet --json "$work/m.json" || complain "measure $way: exit $?"
  for action in hisq asqtad; do
    found=$(sed -n "/\"action\":\t\"$action\"/,/error/s/.*\"correlator\":\t*\(\[.*\]\),*/\1/p" "$work/m.json" | head -1)
    close "$found" "${!action}" 1e-6 || complain "measure $way, $action: $found"
  done
done

# MILC's phases and its antiperiodic sign are found and taken off: the same on two ranks.
for ranks in 1 2; do
  on $ranks solve --action asqtad --fat "$shared/fat.l8" --long "$shared/long.l8" --mass 0.1 --quiet --json "$work/$ranks.json" ||
    complain "MILC's fat and long links on $ranks ranks: exit $?"
done
for field in fat long; do
  [ "$(key ${field}_phases "$work/1.json")" = '"txyz (MILC)"' ] || complain "$field links: phases $(key ${field}_phases "$work/1.json")"
  [ "$(key ${field}_boundary "$work/1.json")" = '"antiperiodic"' ] || complain "$field links: boundary"
done
[ "$(key residual_history "$work/1.json")" = "$(key residual_history "$work/2.json")" ] || complain "other residuals on 2 ranks"
finish
