#!/usr/bin/env bash
# bench suite: golden numbers on 1 and 2 ranks, a figure of merit of a whole run alone, what a FAIL
# looks like, files removed.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
export OMP_NUM_THREADS=1
for ranks in 1 2; do
  on $ranks bench suite --class XS --parts hop,cg1,halo,gemm,io --inner none,single --repetitions 1 --json $ranks.json >out ||
    complain "$ranks ranks: exit $?: $(grep FAIL out)"
  [ "$(key pass $ranks.json)" = true ] || complain "$ranks ranks: pass is $(key pass $ranks.json)"
  [ "$(key class $ranks.json)" = '"XS"' ] || complain "$ranks ranks: class is $(key class $ranks.json)"
  [ "$(key figure_of_merit $ranks.json)" = null ] || complain "a figure of merit of some parts alone"
  grep -q 'PASS  condensate, .* inner single' out || complain "$ranks ranks: the solution was not checked"
  grep -q 'PASS  plaquette: 0.593476806219256' out || complain "$ranks ranks: the plaquette was not checked"
  [[ "$(key links_made_on $ranks.json)" =~ ^\"(cpu|gpu)\"$ ]] || complain "$ranks ranks: links_made_on is $(key links_made_on $ranks.json)"
done
grep -qE '^(cpu_simd .* mpi|cuda .* [a-z_]+) ' out || complain "no halo on 2 ranks"
[ -z "$(ls minidirac-suite* 2>/dev/null)" ] || complain "files were left: $(ls minidirac-suite*)"
on 1 bench suite --class XS --action hisq --inner none --repetitions 1 --json whole.json >out || complain "whole: exit $?"
awk -v f="$(key figure_of_merit whole.json)" 'BEGIN { exit !(f > 0) }' || complain "figure of merit: $(key figure_of_merit whole.json)"
grep -qE '^PASS  class XS, hisq, mass 0.1: [0-9.]+ right-hand sides' out || complain "no verdict: $(tail -2 out)"
"$source_dir/scripts/compare.py" whole.json whole.json --threshold 1 >out 2>&1 || complain "compare.py: $(tail -2 out)"
grep -q '^0 of [0-9]* rows slower' out || complain "compare.py says: $(tail -2 out)"
# The links of the host and of the GPU, where there is one, have the same golden plaquette.
on 1 bench suite --class XS --parts io --operators cpu_simd --links-on cpu --json cpu.json --quiet || complain "--links-on cpu: exit $?"
[ "$(key links_made_on cpu.json)" = '"cpu"' ] || complain "--links-on cpu: made on $(key links_made_on cpu.json)"
for ranks in 1 2; do
  on $ranks bench suite --class XS --parts io --operators cpu_simd --links-on gpu --json gpu.json >out 2>err
  got=$?
  [ $got = 3 ] && grep -qE 'GPU code needs|has no GPU support' err && continue
  [ $got = 0 ] && grep -q 'PASS  plaquette: 0.59347680' out || complain "--links-on gpu on $ranks ranks: exit $got, $(cat err)"
  [ "$(key links_made_on gpu.json)" = '"gpu"' ] || complain "--links-on gpu: made on $(key links_made_on gpu.json)"
done
refuses 2 '--class' 1 bench suite
refuses 2 '--links-on must be one of auto.cpu.gpu' 1 bench suite --class XS --links-on device
refuses 2 '--class must be one of XS.S.M.L.XL' 1 bench suite --class Q
refuses 2 '--parts must be one of copy.hop' 1 bench suite --class XS --parts hops
refuses 3 'nowhere' 2 bench suite --class XS --parts io --scratch "$work/nowhere"
finish
