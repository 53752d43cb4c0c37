#!/usr/bin/env bash
# The Python package reads what the program wrote and finds the same means, errors and masses;
# the example ends with pictures.
. "$(dirname "$0")/common.sh"
python_with numpy h5py matplotlib || exit 77
export OMP_NUM_THREADS=1 MPLCONFIGDIR=$work
cd "$work" || exit 1
"$source_dir/scripts/example_study.sh" "$minidirac" example >out 2>err || complain "the example: exit $?, $(tail -3 err)"
for picture in correlator mass condensate; do
  [ "$(head -c 4 example/study-$picture.png | tail -c 3)" = PNG ] || complain "no picture of the $picture: $(tail -3 err)"
done
lattice=example/chain3.lime
on 1 solve $lattice --mass 0.3 --source point:1,0,2,3 --momenta '0,0,0;1,0,0' --output x.h5 --json x.json --quiet || complain "solve: exit $?"
point="--source point:1,1,2,0 --tol 1e-11 --quiet"
on 1 solve $lattice --mass 0.3 --solver multishift --shifts 0.16,0 $point --output m.h5 || complain "multishift: exit $?"
on 1 solve $lattice --mass 0.5 $point --output half.h5 || complain "mass 0.5: exit $?"
on 1 solve $lattice --mass 0.3 $point --output third.h5 || complain "mass 0.3: exit $?"
PYTHONPATH=$source_dir/python python3 - <<'END' || complain "the package"
import numpy as np, minidirac as md
study, report = md.Study("example/study.h5"), md.read_report("example/study.json")
assert len(study.lattices) == 12 and study.dims == [4, 4, 4, 8] and study.attributes["version"]
near = lambda a, b, tol: np.testing.assert_allclose(a, b, rtol=tol, equal_nan=True)
for row in report["pion"]:
    c = study.pion(row["action"], row["mass"], row["source"], row["momentum"])
    near(md.jackknife(c, None, 2), (row["correlator"], row["error"]), 1e-9)
    near(md.jackknife(c, md.effective_mass, 2), (row["effective_mass"], row["effective_mass_error"]), 1e-7)
for row in report["condensate"]:
    c, noise = study.condensate(row["action"], row["mass"], row["source"])
    near(md.jackknife(c, None, 2), (row["chiral_condensate"], row["chiral_condensate_error"]), 1e-9)
    near(np.sqrt((noise**2).sum()) / len(noise), row["stochastic_error"], 1e-12)
near(md.autocorrelation_time(study.plaquette())[0], report["plaquette_autocorrelation_time"], 1e-9)
near(study.polyakov_loop().mean().real, report["polyakov_loop"][0], 1e-9)
x, about = md.read_propagator("x.h5")
solve = md.read_report("x.json")
assert x.shape == (3, 8, 4, 4, 4, 3) and about["mass"] == 0.3
near(md.correlator(x), solve["pion_correlator"], 1e-12)
for row in solve["pion_momenta"]:
    near(md.correlator(x, row["momentum"], (1, 0, 2, 3)), row["correlator"], 1e-10)
for shift, mass in (("m-0.h5", "half.h5"), ("m-1.h5", "third.h5")):  # solutions of shifts are those of masses
    (x, about), (y, wanted) = md.read_propagator(shift), md.read_propagator(mass)
    assert np.linalg.norm(x - y) < 1e-9 * np.linalg.norm(y) and abs(about["mass"] - wanted["mass"]) < 1e-15
rng = np.random.default_rng(1)
value, error = md.jackknife(rng.normal(2, 1, 4000))
assert abs(error / 4000**-0.5 - 1) < 0.1 and abs(value - 2) < 5 * error
END
"$source_dir/scripts/plot_study.py" x.h5 2>err && complain "a propagator is taken for a study"
[ "$(wc -l <err)" = 1 ] && grep -q 'x.h5 is no study' err || complain "no study: $(cat err)"
# Pictures of what is there alone, which the script names; bad words are one line and exit code 2.
on 1 measure --lattices $lattice --masses 0.1,0.3 --sources random:1 --vectors 2 --output noise.h5 --quiet || complain "measure: exit $?"
"$source_dir/scripts/plot_study.py" noise.h5 -o noise >out 2>err || complain "condensates alone: exit $?"
[ ! -s err ] && [ "$(ls noise-*.png)" = noise-condensate.png ] || complain "condensates alone: $(ls noise-*.png), $(head -3 err)"
[ "$(cut -d: -f1 out | tr '\n' ,)" = "no correlator,no mass,wrote noise-condensate.png," ] || complain "condensates alone: $(cat out)"
on 1 measure --lattices $lattice --masses 0.1 --sources random:1 --vectors 2 --output bare.h5 --quiet || complain "measure: exit $?"
while read -r words; do
  "$source_dir/scripts/plot_study.py" ${words%%=*} -o none >out 2>err
  [ $? = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -q "^plot_study.py: error: .*${words#*=}" err || complain "plot_study.py $words: $(tail -1 err)"
  [ -z "$(ls none-*.png 2>/dev/null)" ] || complain "plot_study.py ${words%%=*} draws $(ls none-*.png)"
done <<'END'
noise.h5 --bin 0=--bin: must lie in 1 to 1048576, got 0
noise.h5 --bin -1=--bin: must lie in 1 to 1048576, got -1
bare.h5=bare.h5 has nothing to draw
x.json=x.json cannot be read
END
"$source_dir/scripts/plot_study.py" noise.h5 -o none/x >out 2>err
[ $? = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'none/x-condensate.png cannot be written' err || complain "-o none/x: $(tail -1 err)"
finish
