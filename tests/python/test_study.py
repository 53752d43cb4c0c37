"""Studies, and statistics of correlators. For unittest and pytest."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import minidirac as md
from oracle import LATTICE


def has_h5py():
    return importlib.util.find_spec("h5py") is not None


def has_matplotlib():
    return importlib.util.find_spec("matplotlib") is not None


class Studies(unittest.TestCase):
    @unittest.skipUnless(has_h5py(), "no h5py")
    def test_study(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "study.h5")
            words = ("--lattices", LATTICE, "--masses", "0.1,0.3", "--actions", "naive", "--output", path,
                     "--json", path + ".json")
            code = "import minidirac as md, sys; md.context().choose_device(1); md.measure(*sys.argv[1:])"
            run = subprocess.run([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, check=True)
            self.assertEqual(run.stdout, b"")  # the library prints nothing
            with open(path + ".json") as file:
                self.assertEqual(json.load(file)["machine"]["hosts"], 1)  # whatever its GPU
            study = md.Study(path)
            self.assertEqual((study.dims, study.masses, len(study.lattices)), ([4, 4, 4, 8], [0.1, 0.3], 1))
            lattice = md.load(LATTICE)
            self.assertAlmostEqual(study.plaquette()[0], lattice.plaquette, delta=1e-13)
            for mass in study.masses:
                c = study.pion("naive", mass, "point:0,0,0,0")
                self.assertTrue(np.allclose(c[0], md.pion_correlator(lattice, mass), rtol=1e-8))
                with self.assertRaisesRegex(md.InputError, "got 1; take more lattices"):
                    study.fit("naive", mass, "point:0,0,0,0", range=(1, 4))
            self.assertTrue(np.array_equal(study.pion("naive", 3 * 0.1, "point:0,0,0,0"), c))  # of 0.3
            with self.assertRaisesRegex(ValueError, "no mass 0.2; it has 0.1, 0.3"):
                study.pion("naive", 0.2, "point:0,0,0,0")
            with self.assertRaisesRegex(md.Error, "is there"):
                md.measure(*words)
            md.measure(*words, "--force", "--quiet")
            lattice.save(os.path.join(folder, "links.h5"))
            with self.assertRaisesRegex(ValueError, "is no study"):
                md.Study(os.path.join(folder, "links.h5"))
            for read in (md.Study, md.read_links, md.read_modes, md.read_report):
                for other in (LATTICE, os.path.join(folder, "none")):
                    with self.assertRaisesRegex(md.InputError, f"^{other} cannot be read: "):
                        read(other)
            links, _ = md.read_links(os.path.join(folder, "links.h5"))
            self.assertTrue(np.array_equal(links, lattice.links))

    @unittest.skipUnless(has_h5py(), "no h5py")
    def test_names(self):
        """Of lattices, as os.fsdecode has them: they may be no UTF-8."""
        with tempfile.TemporaryDirectory() as folder:
            name, path = (os.path.join(os.fsencode(folder), part) for part in (b"cfg\xff.lime", b"\xfe.h5"))
            shutil.copy(LATTICE, name)
            code = "import minidirac as md, pathlib, sys; md.measure(*map(pathlib.Path, sys.argv[1:]))"
            words = ["--lattices", name, "--masses", "1", "--output", path]
            subprocess.run([sys.executable, "-c", code, *words], check=True)
            study = md.Study(os.fsdecode(path))
            self.assertEqual(study.lattices, [os.fsdecode(name)])
            self.assertIn("command_line", study.attributes)

    @unittest.skipUnless(has_h5py(), "no h5py")
    def test_modes(self):
        lattice = md.load(LATTICE)
        modes = md.eigen(lattice, modes=2)
        v = modes.vectors[1]
        even = v[np.indices(lattice.shape).sum(axis=0) % 2 == 0].reshape(*lattice.shape[:3], 2, 3)
        with tempfile.TemporaryDirectory() as folder:
            for store, within in (("double", 1e-15), ("single", 1e-7), ("half", 1e-3), ("fixed8", 1e-2)):
                path = os.path.join(folder, store + ".h5")
                modes.save(path, store)
                values, vectors, about = md.read_modes(path)
                self.assertTrue(np.allclose(values, modes.values, rtol=1e-15) and about["action"] == "naive")
                self.assertLess(np.linalg.norm(vectors[1] - even), within)

    def test_fit(self):
        rng = np.random.default_rng(7)
        t, mass = np.arange(32), 0.4
        exact = 3 * (np.exp(-mass * t) + np.exp(-mass * (32 - t))) + 2 * (np.exp(-1.5 * t) + np.exp(-1.5 * (32 - t)))
        common = rng.normal(size=(200, 1))  # slices fluctuate together
        data = exact * (1 + 0.03 * common + 0.01 * rng.normal(size=(200, 32)))
        self.assertTrue(np.allclose(md.fold(exact), exact[:17]))
        for words in ({}, {"range": (6, 16)}, {"range": (6, 16), "correlated": False}, {"width": 4}):
            fit = md.fit_mass(data, **words)
            self.assertLess(abs(fit.mass - mass), 4 * fit.error)
            self.assertTrue(0 < fit.error < 0.01 and fit.range[1] == 16 and abs(fit.amplitude / 3 - 1) < 0.1)
        self.assertGreater(md.fit_mass(data).range[0], 1)  # not where the heavier state is
        with self.assertRaisesRegex(ValueError, "correlated=False"):
            md.fit_mass(data[:8], range=(2, 16))
        self.assertEqual(md.fit_mass(data, range=(15, 16)).freedom, 0)
        for outside in (9.0, 7.0, 1e-4):
            c = (np.exp(-outside * t[:8]) + np.exp(-outside * (8 - t[:8]))) * (1 + 1e-7 * rng.normal(size=(40, 8)))
            with self.assertRaisesRegex(md.InputError, "the mass of a fit must lie between 0.001 and 6"):
                md.fit_mass(c, range=(1, 4))
        errors = [md.fit_mass(exact * (1 + 0.01 * rng.normal(size=(50, 32))), range=(6, 16)) for _ in range(40)]
        value, error = md.fit_mass(data, range=(6, 16)).curve(t[6:17])
        self.assertTrue(np.all(error > 0) and np.all(np.abs(value - exact[6:17]) < 5 * error + 1e-3 * exact[6:17]))
        few = [md.fit_mass(exact * (1 + 0.01 * rng.normal(size=(20, 32))), range=(6, 16)) for _ in range(40)]
        pull = [(fit.mass - mass) / fit.error for fit in few]  # 20 lattices, 11 slices: the error knows that
        self.assertLess(np.std(pull), 1.5)
        spread = np.std([fit.mass for fit in errors])
        self.assertTrue(0.5 < spread / np.mean([fit.error for fit in errors]) < 2)

    def test_refused_fits(self):
        rng, t = np.random.default_rng(5), np.arange(16)
        good = (np.exp(-t / 2) + np.exp(t / 2 - 8)) * (1 + 0.01 * rng.normal(size=(40, 16)))
        holes, twins = good.copy(), good.copy()
        holes[3, 4] = np.nan
        twins[:, [5, 11]] = twins[:, [6, 10]]
        for words, data, how in (
                ("got nan of lattice 3 at t = 4", holes, {}), ("got nan of", holes, {"correlated": False}),
                ("range of doubles", 1e160 * good, {"range": (2, 8)}),
                ("range of doubles", 1e160 * good, {"range": (2, 8), "correlated": False}),
                ("singular", np.repeat(good[:1], 40, axis=0), {"range": (2, 8)}),
                ("singular", twins, {"range": (2, 8)}), ("8 bins or more, got 8 and 1;", good[:1], {}),
                ("shape", good[0], {}), ("width must be an integer", good, {"width": 1.5}),
                *(("0 <= first < last <= 8, got", good, {"range": slices}) for slices in (
                    (-2, -1), (-4, -1), (3, 3), (0, 0), (1, 9), (1, 20), (4, 2), (-3, 8))),
                *(("range must be 2 numbers", good, {"range": slices}) for slices in ((), (1, 2, 3), 5, (1.0, 3)))):
            with self.assertRaisesRegex(md.InputError, words):
                md.fit_mass(data, **how)
        for width in (0, -1):
            for call in (lambda: md.jackknife(good, width=width), lambda: md.fit_mass(good, width=width)):
                with self.assertRaisesRegex(ValueError, f"^width must be 1 or more, got {width}; give"):
                    call()
        decay = np.exp(-np.arange(500.0)) * (1 + 0.01 * rng.normal(size=(40, 1)))
        far = md.fit_mass(decay, range=(200, 210), correlated=False)  # heavier masses are zeros there
        self.assertAlmostEqual(far.mass, 1, delta=0.01)

    def test_kinds_of_numbers(self):
        np.testing.assert_array_equal(md.effective_mass([4, 3, 2, 3]), md.effective_mass(np.array([4, 3, 2, 3])))
        loops = np.exp(1j * np.arange(9))
        for call in (lambda: md.jackknife(loops), lambda: md.jackknife(loops.real, lambda mean: 1j * mean),
                     lambda: md.fold(loops), lambda: md.fit_mass(loops[None]), lambda: md.effective_mass(loops),
                     lambda: md.autocorrelation_time(loops), lambda: md.jackknife(["a"])):
            with self.assertRaisesRegex(md.InputError, r"must be real numbers, got .*; take \.real"):
                call()
        with self.assertRaisesRegex(md.InputError, "one lattice or more"):
            md.jackknife([])
        with self.assertRaisesRegex(md.InputError, "shape"):
            md.effective_mass(np.ones((4, 8)))
        with self.assertRaisesRegex(md.InputError, "shape"):
            md.autocorrelation_time(np.ones((4, 8)))

    def test_values_that_do_not_vary(self):
        for count in (6, 7):  # whose mean, as rounded, is not 0.1
            self.assertTrue(np.isnan(md.autocorrelation_time(np.full(count, 0.1))).all())

    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            report = {"schema_version": 1, "figure": None, "lattice": None, "reals": [1, None],
                      "rows": [{"time": None, "sensors": None}], "machine": {"gpu": None}}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file)
            read = md.read_report(path)
            for number in (read["figure"], read["reals"][1], read["rows"][0]["time"]):
                self.assertTrue(np.isnan(number))
            self.assertEqual((read["lattice"], read["rows"][0]["sensors"], read["machine"]["gpu"]), (None,) * 3)
            with open(path, "w", encoding="utf-8") as file:
                file.write("[]")
            with self.assertRaisesRegex(md.InputError, "no report of schema version 1"):
                md.read_report(path)

    @unittest.skipUnless(has_h5py() and has_matplotlib(), "no h5py and matplotlib")
    def test_figures(self):
        """Points beside each other, a band where it fits that has the mass, and what was done below."""
        from minidirac.plots import plot_condensates, plot_correlators

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "study.h5")
            md.measure("--lattices", LATTICE, "--masses", "0.1,0.3", "--sources", "point:0,0,0,0 random:1", "--vectors", "2",
                       "--output", path)
            study = md.Study(path)
        rng, t = np.random.default_rng(3), np.arange(8)
        masses = np.array([[0.5], [0.9]])
        exact = np.exp(-masses * t) + np.exp(-masses * (8 - t))
        study.arrays["pion"] = np.full((40, *study.arrays["pion"].shape[1:]), np.nan)
        study.arrays["pion"][:, 0, :, 0, 0] = exact * (1 + 0.01 * rng.normal(size=(40, 2, 8)))
        study.lattices = [f"cfg{i}.h5" for i in range(40)]
        for function in (None, md.effective_mass):
            figure = plot_correlators(study, function)
            axes, points = figure.axes[0], [bars.lines[0].get_xdata() for bars in figure.axes[0].containers]
            self.assertEqual(len(points), 2)
            self.assertTrue(0 < abs(points[0] - points[1]).max() < 0.5 and abs(points[0] + points[1] - 2 * t).max() < 1e-9)
            bands = [c.get_paths()[0].vertices for c in axes.collections if len(c.get_paths()[0]) > 9]
            self.assertEqual(len(bands), 2)
            for band, mass, bars in zip(bands, masses[:, 0], axes.containers):
                self.assertTrue(band[:, 1].max() > band[:, 1].min() and band[:, 0].max() < 4.5)
                if function:
                    self.assertTrue(np.all(abs(band[:, 1] - mass) < 0.05))
                self.assertIn(": 0.", bars.get_label())
            below = figure._supxlabel.get_text()
            about = study.attributes
            for words in (about["command_line"][:60], f"commit {about['commit']}", "40 lattices, cfg0.h5 to cfg39.h5",
                          "4 x 4 x 4 x 8"):
                self.assertIn(words, below)
        self.assertEqual(len(plot_correlators(study, fits=False).axes[0].containers), 2)
        study.arrays["condensate"] = np.repeat(study.arrays["condensate"], 40, axis=0)
        self.assertEqual(plot_condensates(study).axes[0].get_ylabel(), "tr M^-1 / V")
        for what, draw, rule in (("pion", plot_correlators, r"C\(t\) needs finite values, got none of point:0,0,0,0, random:1; "),
                                 ("condensate", plot_condensates, "condensates needs values at all masses, got none of ")):
            study.arrays[what] *= np.nan
            with self.assertRaisesRegex(md.InputError, rule):
                draw(study)

    def test_errors_in_words(self):
        for value, error, text in (
                (0.581187, 0.000312, "0.58119(31)"), (-0.581187, 0.000996, "-0.5812(10)"), (3.44, 1.2, "3.4(1.2)"),
                (123.4, 12, "123(12)"), (0.5, 12, "0(12)"), (45, 123, "0.4(1.2)e+02"), (150432, 1234, "1.504(12)e+05"),
                (0.0, 1e-9, "0.0(1.0)e-09"), (-1.5e-300, 2.1e-302, "-1.500(21)e-300"), (1.0, 1e-20, "1 +- 1.0e-20"),
                (0.5, 0.0, "0.5(0)"), (0.5, np.inf, "0.5(inf)"), (0.581187, np.nan, "0.581187"), (np.nan, 0.1, "nan")):
            self.assertEqual(md.format_error(value, error), text)
        self.assertEqual(md.format_error(*md.jackknife([1, 2, 4])), "2.33(88)")
        self.assertEqual(str(md.Fit(0.41234, 0.00312, 3.0, (4, 16), 9.51, 11)),
                         "0.4123(31), t = 4 to 16, chi^2 9.51 for 11 degrees of freedom")


if __name__ == "__main__":
    unittest.main()
