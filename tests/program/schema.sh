#!/usr/bin/env bash
# A report of every command keeps to docs/report.schema.json; a report that does not is found.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || exit 77
here=$(cd "$(dirname "$0")" && pwd)
check() { python3 "$here/check_schema.py" "$source_dir/docs/report.schema.json" "$@"; }
cd "$work" || exit 1
lattice=links.lime
cp "$source_dir/inputs/beta5.7_4x4x4x8.lime" $lattice
export OMP_NUM_THREADS=1

# report NAME RANKS ARGUMENTS...
report() {
  local name=$1 ranks=$2
  shift 2
  on "$ranks" "$@" --quiet --json "$name.json" || complain "$*: exit $?"
}
report info 1 info $lattice
report convert 1 convert $lattice copy.h5
report generate 1 generate --dims 4x4x4x4 --start heatbath --sweeps 1 -o made.h5
report smear 1 smear --action asqtad $lattice --fat-out fat.h5 --long-out long.h5
report solve 2 solve --lattice $lattice --mass 0.5 --tune=choices.json
report solve-shifts 1 solve --lattice $lattice --mass 0.5 --solver multishift --shifts 0.1,0.3
report solve-walls 1 solve --lattice $lattice --mass 0.5 --action domainwall --Ls 4
report solve-wilson 1 solve --lattice $lattice --mass 0.5 --action wilson
report solve-wilson-shifts 1 solve --lattice $lattice --mass 0.5 --action wilson --solver multishift --shifts 0.1,0.3
report solve-auto 1 solve --lattice $lattice --mass 0.05 --solver auto --inner single --source random:1 --rhs 2
report solve-points 1 solve --lattice $lattice --mass 0.5 --source 'points:0,0,0,0;1,1,0,0' --momenta upto:1
report solution 1 solve $lattice --mass 0.5 --tol 1e-4 --output x.lime
report info-vectors 1 info x.lime
report convert-vectors 2 convert x.lime x.h5
report info-solution 2 info x.h5
report info-report 1 info solve.json
report measure 2 measure --lattices "$lattice copy.h5" --allow-repeats --masses 0.5,0.6 --sources 'point:0,0,0,0 u1:1' --vectors 2 --momenta upto:1 --output study.h5
report eigen 1 eigen $lattice --modes 2 --tol 1e-6 --output modes.h5 --store single
report eigen-start 1 eigen $lattice --modes 2 --tol 1e-6 --start modes.h5
report solve-deflated 1 solve $lattice --mass 0.5 --deflate modes.h5
report eigen-hisq 1 eigen $lattice --action hisq --modes 2 --tol 1e-4 --output hisq-modes.h5
report solve-hisq-deflated 1 solve $lattice --action hisq --mass 0.5 --deflate hisq-modes.h5
report validate 1 validate --lattice $lattice --backend cpu_simd --precision single
report validate-walls 1 validate --lattice $lattice --action domainwall --Ls 2 --backend cpu_simd --precision single --reconstruct 18
report bench-dirac 2 bench dirac --dims 4x4x4x4 --backends cpu_simd --repetitions 1
report bench-dirac-matvec 1 bench dirac --kernel matvec --counts 64 --repetitions 3
report bench-solver 1 bench solver --dims 4x4x4x4 --mass 0.5 --operators cpu_simd --inner none --repetitions 1 --tol 1e-8
report bench-solver-links 1 bench solver --fat fat.h5 --long long.h5 --action asqtad --mass 0.5 --operators cpu_simd --inner none --repetitions 1 --tol 1e-6
report bench-solver-modes 1 bench solver --dims 4x4x4x4 --mass 0.5 --modes 2 --modes-tol 1e-6 --rhs 2 --operators cpu_simd --inner none --repetitions 1 --tol 1e-8
report bench-suite 1 bench suite --class XS --parts copy,cg1,io --inner none --repetitions 1
report bench-suite-walls 1 bench suite --class XS --action domainwall --parts copy --repetitions 1
MINIDIRAC_WAITING=off report info-waiting 1 info "$lattice"
report bench-gemm 1 bench gemm --shapes 9x10x11 --kernels naive,cpu_tiled --repeat 1
report bench-copy 1 bench copy
for kind in transpose shift; do
  report bench-$kind 1 bench $kind --dims 64x64 --blocks 32x32 --space host --repeat 2
done
report bench-gemv 1 bench gemv --dims 64x64 --space host --repeat 2
for command in $("$minidirac" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p') \
  $("$minidirac" bench --help | sed -n 's/^  \([a-z]*\)  .*/bench-\1/p'); do
  [ "$command" = bench ] || [ -e "$command.json" ] || complain "no report of $command is held to the schema"
done
check ./*.json || complain "reports that do not keep to the schema"

# What a machine is, against what the system says; a job, and cores bound.
cores=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$$/status)
first=${cores%%[-,]*}
PBS_JOBID=17.host OMPI_MCA_hwloc_base_binding_policy=none taskset -c "$first" "$minidirac" info $lattice --quiet --json bound.json || complain "bound: exit $?"
python3 - bound.json info.json solve.json "$first" "$cores" <<'END' || complain "machine: $(cat bound.json)"
import json, os, platform, sys
bound, free, two = (json.load(open(name))["machine"] for name in sys.argv[1:4])
read = lambda name: open(name).read().strip() if os.path.exists(name) else None
assert bound["kernel"] == platform.release()
assert bound["memory_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
assert bound["governor"] == read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
network = "/sys/class/infiniband"
assert bound["interconnect"] == ((os.path.isdir(network) and sorted(os.listdir(network))) or None)
assert bound["job"] == "PBS_JOBID=17.host" and bound["rank_cores"] == [sys.argv[4]], bound
assert free["job"] is None and free["rank_cores"] == [sys.argv[5]], free
assert len(two["rank_cores"]) == 2 and all(two["rank_cores"]), two
END

# A name that is no UTF-8 stands escaped in the command line; quotes are those of a shell.
odd=$(printf "it's \377.lime")
if cp $lattice "$odd" 2>/dev/null; then
  report odd 1 info "$odd"
  check odd.json || complain "a name that is no UTF-8"
  python3 - odd.json <<'END' || complain "command line: $(key command_line odd.json)"
import json, shlex, sys
words = shlex.split(json.load(open(sys.argv[1], encoding="utf-8"))["machine"]["command_line"])
assert words[1:] == ["info", "it's \\xff.lime", "--quiet", "--json", "odd.json"], words
END
fi

# Reports that break a rule, one each.
broken() {
  python3 -c "import json; r = json.load(open('$1.json')); $2; json.dump(r, open('broken.json', 'w'))"
  check broken.json >out 2>&1
  [ $? = 1 ] || complain "not found: $2"
  grep -q "$3" out || complain "'$2' is told as: $(head -2 out)"
}
broken info "del r['machine']['cpu']" 'machine: no cpu'
broken info "r['schema_version'] = 2" 'schema_version'
broken info "r['command'] = 'inform'" 'command'
broken solve "r['iterations'] = 'many'" 'iterations'
broken solve "r['tuned'] = [{'work': 'a hop'}]" 'tuned.0.: no build'
broken solve "r['grid'] = [1, 1, 2]" '3 items'
broken solve "r['grid_chosen_by'] = 'nobody'" 'grid_chosen_by'
grep -q '"grid_reason":.*fewest sites on faces of' solve.json || complain "why this rank grid: $(grep grid solve.json)"
broken bench-dirac "del r['rows'][0]['gflops']" 'rows\[0\]: no gflops'
broken bench-suite "del r['rows'][0]['part']" 'rows\[0\]: no part'
broken bench-suite "r['links_made_on'] = 'host'" 'links_made_on'
broken bench-suite "del r['busy_cores']" 'no busy_cores'
broken bench-suite "next(w for w in r['rows'] if 'sensors' in w)['sensors']['cpu_clock_mhz'] = [1, 2]" 'rows.*cpu_clock_mhz'
broken bench-solver "del r['rows'][0]['gflops_milc']" 'rows\[0\]: no gflops_milc'
broken convert "del r['out']" 'no out'
broken solve "r['rhs_iterations'] = 3" 'rhs_iterations'
broken eigen "r['filter_window'] = 0.1" 'filter_window'
printf 'no lattice' >none.h5
on 1 convert none.h5 none.lime --json refused.json 2>/dev/null
check refused.json || complain "a report of convert that refuses its file"
# One that a signal ended knows no links yet.
broken bench-solver "del r['plaquette']" 'no plaquette'
python3 -c "import json; r = json.load(open('broken.json')); r['interrupted'] = True; json.dump(r, open('ended.json', 'w'))"
check ended.json || complain "a report of bench solver that was ended early"
broken bench-suite "r['devices_are'] = 'nodes'" 'devices_are'
broken bench-gemm "r['machine']['date_utc'] = 'today'" 'date_utc'
finish
