"""Lattices of another code through the package: against its printed correlators and eigenvalues, against the
program's own reports, and against D and a solve of numpy on what numpy reads."""
import os
import tempfile
import unittest

import numpy as np

import minidirac as md
from oracle import Oracle, read_milc, report

FOLDER = os.environ.get("MINIDIRAC_SHARED_LATTICES", "")
LATTICE = os.path.join(FOLDER, "lat.sample.l4448")
# As MILC prints them, of lat.sample.l4448.gf, periodic, mass 0.05, point source at the origin; relative 1e-6, as
# links of these files are unitary to 1.5e-7.
HISQ = [1.59174071439, 0.756932165707, 0.773457898327, 0.561252284656, 0.484802155718, 0.350436600618, 0.467375453595,
        0.61228081908]
ASQTAD = [3.0438413599, 1.23378071261, 1.2876976659, 0.88195187545, 0.743703252486, 0.559135030244, 0.84242374754,
          1.16533387932]
HISQ_EIGENVALUES = [0.001648390005, 0.002116870649, 0.002285375175, 0.002702999803]


@unittest.skipUnless(os.path.exists(LATTICE), "no lattices of another code")
class HeldOut(unittest.TestCase):
    def test_hop(self):
        lattice, oracle = md.load(LATTICE), Oracle(read_milc(LATTICE))
        self.assertTrue(np.array_equal(lattice.links, oracle.links))
        rng = np.random.default_rng(5)
        v = rng.normal(size=(2, *lattice.shape, 3)) + 1j * rng.normal(size=(2, *lattice.shape, 3))
        d = oracle.d(v)
        for parity in (0, 1):
            here = oracle.odd == bool(parity)
            for backend in ("cpu_ref", "auto"):
                hop = md.hop(lattice, v, parity=parity, backend=backend)
                self.assertFalse(hop[:, ~here].any())
                self.assertLessEqual(abs(hop[:, here] - d[:, here]).max(), 64 * np.finfo(float).eps)
        wrong = Oracle(lattice.links * np.array([1, 1, 1, -1])[:, None, None])  # that the comparison can fail
        self.assertGreater(abs(wrong.d(v) - d).max(), 1)

    def test_correlator(self):
        lattice, oracle = md.load(LATTICE), Oracle(read_milc(LATTICE))
        b = np.zeros((3, *lattice.shape, 3), dtype=complex)
        for colour in range(3):
            b[colour, 0, 0, 0, 0, colour] = 1
        x = oracle.solve(b, 0.1)
        c = md.pion_correlator(lattice, mass=0.1, tol=1e-12)
        self.assertTrue(np.allclose(c, (abs(x) ** 2).sum(axis=(0, 2, 3, 4, 5)), rtol=1e-9, atol=0))
        s = md.solve(lattice, b, mass=0.1, tol=1e-12)
        self.assertLessEqual(np.linalg.norm(s.x - x), 1e-9 * np.linalg.norm(x))
        words = ("--mass", "0.1", "--source", "point:0,0,0,0", "--tol", "1e-12")
        solve = report("solve", LATTICE, *words)
        self.assertTrue(np.allclose(c, solve["pion_correlator"], rtol=1e-10, atol=0))
        self.assertEqual(s.iterations, solve["iterations"])
        self.assertTrue(np.allclose(s.history, solve["residual_history"], rtol=1e-9))
        with tempfile.TemporaryDirectory() as folder:
            measure = report("measure", "--lattices", LATTICE, "--masses", "0.1", "--tol", "1e-12", "--output",
                             os.path.join(folder, "study.h5"))
        self.assertTrue(np.allclose(c, measure["pion"][0]["correlator"], rtol=1e-10, atol=0))

    def test_correlators_of_another_code(self):
        lattice = md.load(LATTICE + ".gf")
        for action, known in (("hisq", HISQ), ("asqtad", ASQTAD)):
            c = md.pion_correlator(lattice, mass=0.05, action=action, boundary="periodic")
            self.assertLessEqual(abs(c / known - 1).max(), 1e-6)
        modes = md.eigen(lattice, modes=4, action="hisq", boundary="periodic")
        self.assertLessEqual(abs(modes.values / HISQ_EIGENVALUES - 1).max(), 1e-6)


if __name__ == "__main__":
    unittest.main()
