"""Quarks with four spins: the package against the program, and M against what it must be."""
import tempfile
import unittest

import numpy as np

import minidirac as md
from oracle import LATTICE, report

FIVE = {"Ls": 4, "M5": 1.7, "b5": 1.3, "c5": 0.3}
WORDS = [word for name, value in FIVE.items() for word in (f"--{name}", str(value))]


class Spins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lattice = md.load(LATTICE)

    def test_wilson(self):
        want = report("solve", "--lattice", LATTICE, "--action", "wilson", "--mass", "-0.3", "--source", "point:1,0,2,3")
        for words in ({}, {"inner": "single"}, {"solver": "bicgstab"}):
            found = md.solve(self.lattice, "point:1,0,2,3", mass=-0.3, action="wilson", tol=1e-11, **words)
            self.assertTrue(found.converged)
            self.assertEqual(found.x.shape, (12, *self.lattice.shape, 4, 3))
            pion = (abs(found.x) ** 2).sum(axis=(0, 2, 3, 4, 5, 6))
            np.testing.assert_allclose(pion, want["pion_correlator"], rtol=1e-8)
        np.testing.assert_allclose(md.correlator(found.x, origin=(1, 0, 2, 3)), np.roll(pion, -3), rtol=1e-12)
        with self.assertRaisesRegex(md.InputError, "must have 6 axes"):
            md.correlator(found.x[0, 0])
        b = md.source(self.lattice, "point:1,0,2,3", spins=4)
        quark = md.Quark(self.lattice, "wilson", n_rhs=12)
        self.assertLess(np.linalg.norm(quark.apply(found.x, -0.3) - b), 1e-10 * np.linalg.norm(b))
        np.testing.assert_allclose(md.pion_correlator(self.lattice, -0.3, "wilson", source=(1, 0, 2, 3)), pion, rtol=1e-8)
        # g5 M g5 = M^dag, and M = 4 + m - H / 2
        rng = np.random.default_rng(2)
        v = [rng.normal(size=(*self.lattice.shape, 4, 3)) + 1j * rng.normal(size=(*self.lattice.shape, 4, 3)) for _ in "ab"]
        g5 = np.array([1, 1, -1, -1])[:, None]
        one = md.Quark(self.lattice, "wilson")
        m = [one.apply(v[0], 0.2), g5 * one.apply(g5 * v[1], 0.2)]
        self.assertAlmostEqual(abs(np.vdot(v[1], m[0]) - np.vdot(m[1], v[0])) / abs(np.vdot(v[1], m[0])), 0, delta=1e-13)
        hop = sum(md.hop(self.lattice, v[0], parity, action="wilson") for parity in (0, 1))
        np.testing.assert_allclose(m[0], 4.2 * v[0] - hop / 2, atol=1e-13)

    def test_walls(self):
        self.assertIsNone(md.smear(self.lattice, "wilson").long)
        want = report("solve", "--lattice", LATTICE, "--action", "mobius", "--mass", "0.2", *WORDS)
        found = md.solve(self.lattice, "point:0,0,0,0", mass=0.2, action="mobius", tol=1e-11, **FIVE)
        pion = (abs(found.x) ** 2).sum(axis=(0, 2, 3, 4, 5, 6))
        np.testing.assert_allclose(pion, want["pion_correlator"], rtol=1e-8)
        field = np.ones((*self.lattice.shape, 4, 4, 3))
        self.assertEqual(md.hop(self.lattice, field, action="mobius", **FIVE).shape, field.shape)

    def test_modes(self):
        for action, words, more in (("wilson", {}, []), ("mobius", FIVE, WORDS)):
            want = report("eigen", "--lattice", LATTICE, "--action", action, "--mass", "0.2", "--modes", "2", *more)
            modes = md.eigen(self.lattice, 2, action, mass=0.2, **words)
            np.testing.assert_allclose(modes.values, want["eigenvalues"], rtol=1e-8)
            first = modes.vectors[0]
            three = md.eigen(self.lattice, 2, action, mass=0.2, n_rhs=3, **words).vectors[0]
            self.assertEqual(three.shape, first.shape)
            self.assertEqual(first.shape, (*self.lattice.shape, *((4,) if words else ()), 4, 3))
            self.assertAlmostEqual(np.linalg.norm(first), 1.0, delta=1e-10)
            with tempfile.TemporaryDirectory() as place:
                modes.save(f"{place}/modes.h5")
                with self.assertRaisesRegex(md.InputError, "fixed8"):
                    modes.save(f"{place}/narrow.h5", "fixed8")
                again = md.load_eigen(self.lattice, f"{place}/modes.h5", action, mass=0.2, **words)
                np.testing.assert_array_equal(again.vectors[1], modes.vectors[1])
                with self.assertRaisesRegex(md.InputError, "mass"):
                    md.load_eigen(self.lattice, f"{place}/modes.h5", action, mass=0.3, **words)
            found = md.solve(self.lattice, "point:0,0,0,0", mass=0.2, action=action, tol=1e-11, modes=modes, **words)
            plain = md.solve(self.lattice, "point:0,0,0,0", mass=0.2, action=action, tol=1e-11, **words)
            np.testing.assert_allclose(found.x, plain.x, atol=1e-9 * abs(plain.x).max())
            with self.assertRaisesRegex(md.InputError, "modes must be of"):
                md.solve(self.lattice, "point:0,0,0,0", mass=0.3, action=action, modes=modes, **words)

    def test_refusals(self):
        colour = np.ones((*self.lattice.shape, 3))
        for words, call in (("takes no --Ls", lambda: md.Quark(self.lattice, "wilson", Ls=8)),
                            ("takes no --b5", lambda: md.Quark(self.lattice, "domainwall", b5=1.5)),
                            ("slices must be within", lambda: md.Quark(self.lattice, "mobius", Ls=99)),
                            ("sources must have the shape", lambda: md.solve(self.lattice, colour, action="wilson")),
                            ("wilson needs a mass", lambda: md.eigen(self.lattice, 2, action="wilson")),
                            ("naive takes no mass", lambda: md.eigen(self.lattice, 2, mass=0.1))):
            with self.assertRaisesRegex(md.InputError, words):
                call()


if __name__ == "__main__":
    unittest.main()
