"""The package minidirac against the program, and against arithmetic of numpy alone. For unittest and
pytest; the variable MINIDIRAC is the program."""
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import minidirac as md
from oracle import LATTICE, Oracle, report


def random_field(shape, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lattice = md.load(LATTICE)
        cls.field = (3, *cls.lattice.shape, 3)

    def test_lattice(self):
        info = report("info", LATTICE)
        self.assertEqual(self.lattice.dims, (4, 4, 4, 8))
        self.assertEqual(list(self.lattice.dims), info["dims"])
        for key in ("plaquette", "plaquette_ss", "plaquette_st", "link_trace"):
            self.assertAlmostEqual(getattr(self.lattice.means, key), info[key], delta=1e-13)
        self.assertEqual(self.lattice.plaquette, self.lattice.means.plaquette)
        links = self.lattice.links
        again = md.Lattice(links)
        self.assertTrue(np.array_equal(again.links, links))
        self.assertEqual(again.plaquette, self.lattice.plaquette)
        self.assertAlmostEqual(np.einsum("...ii", links).real.mean() / 3, self.lattice.means.link_trace, delta=1e-12)
        not_contiguous = links.transpose(0, 1, 2, 3, 4, 6, 5).conj()  # another lattice, and a copy
        self.assertTrue(np.array_equal(md.Lattice(not_contiguous).links, not_contiguous))

    def test_files_of_lattices(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "copy.nersc")
            self.lattice.save(path)
            self.assertTrue(np.allclose(md.load(path).links, self.lattice.links, atol=1e-14))
            with self.assertRaises(md.Error):
                self.lattice.save(path)
            self.lattice.save(path, replace=True)

    def test_generate(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "chain.h5")
            report("generate", "--dims", "4x4x4x8", "--beta", "5.7", "--sweeps", "3", "--seed", "7", "--output", path)
            want = md.load(path)
        start = md.generate((4, 4, 4, 8), beta=5.7, sweeps=2, seed=7)
        before = start.links
        made = md.generate(start, beta=5.7, seed=7, first=2)
        self.assertTrue(np.array_equal(made.links, want.links) and np.array_equal(start.links, before))
        self.assertEqual(made.plaquette, want.plaquette)
        with self.assertRaisesRegex(md.InputError, "leave comm out"):
            md.generate(start, beta=5.7, comm=md.Context())
        with self.assertRaisesRegex(md.InputError, "beta must be within"):
            md.generate(start, beta=-1)

    def test_no_copies(self):
        from minidirac.arrays import given

        b = random_field(self.field)
        self.assertTrue(given(b).address == b.ctypes.data and given(b[1:]).address == b[1:].ctypes.data)
        turned = b.transpose(0, 1, 2, 3, 5, 4).copy().transpose(0, 1, 2, 3, 5, 4)  # gaps
        self.assertNotEqual(given(turned).address, turned.ctypes.data)
        self.assertTrue(np.array_equal(md.hop(self.lattice, turned), md.hop(self.lattice, b)))
        self.assertTrue(np.allclose(md.hop(self.lattice, b.astype("c8")), md.hop(self.lattice, b), atol=1e-5))

    def test_hop(self):
        v = random_field(self.field)
        even, odd = md.hop(self.lattice, v, parity=0), md.hop(self.lattice, v, parity=1)
        self.assertTrue(np.allclose(even + odd, Oracle(self.lattice.links).d(v), atol=1e-13))
        t, z, y, x = np.indices(self.lattice.shape)
        is_odd = ((t + z + y + x) % 2).astype(bool)
        self.assertFalse(even[:, is_odd].any() or odd[:, ~is_odd].any())
        self.assertTrue(np.allclose(md.hop(self.lattice, v[0], parity=1), odd[0], atol=1e-13))
        quark = md.Quark(self.lattice, n_rhs=3)
        self.assertTrue(np.allclose(quark.apply(v, 0.3), 0.3 * v + even + odd, atol=1e-13))
        for action in ("naive", "hisq"):  # <a, Deo b> = -<Doe a, b>
            a, b = random_field(self.field, 2), random_field(self.field, 3)
            left = np.vdot(a, md.hop(self.lattice, b, 0, action=action))
            right = np.vdot(md.hop(self.lattice, a, 1, action=action), b)
            self.assertLess(abs(left + right), 1e-11 * abs(left))

    def test_solve(self):
        b = random_field(self.field, 4)
        for action, words in (("naive", {}), ("hisq", {"inner": "single"}), ("naive", {"solver": "block"})):
            s = md.solve(self.lattice, b, mass=0.1, action=action, tol=1e-9, **words)
            rest = 0.1 * s.x + md.hop(self.lattice, s.x, 0, action) + md.hop(self.lattice, s.x, 1, action) - b
            norms = np.sqrt((abs(rest) ** 2).sum(axis=(1, 2, 3, 4, 5)) / (abs(b) ** 2).sum(axis=(1, 2, 3, 4, 5)))
            self.assertTrue(s.converged and s.x.shape == b.shape and s.residuals.shape == (3,))
            self.assertTrue(np.allclose(norms, s.residuals, rtol=1e-3) and norms.max() < 1e-9)
            self.assertEqual(len(s.history), s.iterations + 1)
        again = md.solve(self.lattice, b, mass=0.1, tol=1e-9, guess=s)
        self.assertLess(again.iterations, s.iterations)
        one = md.solve(self.lattice, b[0], mass=0.1, boundary="periodic")
        self.assertEqual(one.x.shape, b[0].shape)
        short = md.solve(self.lattice, b, mass=0.1, max_iter=3)
        self.assertFalse(short.converged)
        self.assertEqual(short.iterations, 3)

    def test_pion(self):
        for action in ("naive", "hisq"):
            c = md.pion_correlator(self.lattice, mass=0.1, action=action, source=(0, 0, 0, 0))
            words = ("--mass", "0.1", "--source", "point:0,0,0,0", "--tol", "1e-10", "--action", action)
            want = report("solve", LATTICE, *words)["pion_correlator"]
            self.assertTrue(c.shape == (8,) and np.allclose(c, want, rtol=1e-8, atol=0))
        s = md.solve(self.lattice, "point:1,0,2,3", mass=0.1)
        c = md.pion_correlator(self.lattice, mass=0.1, source=(1, 0, 2, 3))
        self.assertTrue(np.allclose(c, (abs(s.x) ** 2).sum(axis=(0, 2, 3, 4, 5)), rtol=1e-12))
        self.assertTrue(np.array_equal(np.argwhere(md.source(self.lattice, "point:1,0,2,3")[0])[0], (3, 2, 0, 1, 0)))
        two = md.solve(self.lattice, "seeded:2,1", mass=0.1, n_rhs=6)
        c = md.pion_correlator(self.lattice, mass=0.1, source="seeded:2,1", n_rhs=6)
        self.assertTrue(np.allclose(c, (abs(two.x) ** 2).sum(axis=(0, 2, 3, 4, 5)), rtol=1e-12))
        with self.assertRaisesRegex(md.UnreachedError, "must converge") as caught:
            md.pion_correlator(self.lattice, max_iter=3)
        self.assertEqual(caught.exception.status, 1)

    def test_smear(self):
        links = md.smear(self.lattice, action="hisq")
        b = random_field(self.field, 5)
        there = md.solve(links, b, mass=0.2)
        here = md.solve(self.lattice, b, mass=0.2, action="hisq")
        self.assertTrue(np.array_equal(there.x, here.x))
        arrays = md.improved(self.lattice, links.fat, links.long)
        self.assertTrue(np.array_equal(arrays.fat, links.fat) and np.array_equal(arrays.long, links.long))
        self.assertTrue(np.array_equal(md.hop(arrays, b), md.hop(links, b)))
        naive = md.smear(self.lattice, action="naive")
        self.assertTrue(naive.long is None and np.array_equal(naive.fat, self.lattice.links))
        self.assertGreater(md.smear(self.lattice, action="stout", steps=2).plaquette, self.lattice.plaquette)

    def test_files_that_do_not_belong_together(self):
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "other.h5")
            md.Lattice(self.lattice.links.conj()).save(other)
            files = {}
            for action, of, path in (("hisq", "a", LATTICE), ("asqtad", "a", LATTICE), ("hisq", "b", other)):
                pair = [os.path.join(folder, f"{links}.{action}.{of}.h5") for links in ("fat", "long")]
                report("smear", path, "--action", action, "--fat-out", pair[0], "--long-out", pair[1])
                files[action + of] = pair
            fat, long = files["hisqa"]
            self.assertTrue(np.array_equal(md.improved(self.lattice, fat, long).fat,
                                           md.smear(self.lattice, action="hisq").fat))
            for words, pair in (("links must be of one lattice", (fat, files["hisqb"][1])),
                                ("action hisq is asked for, the file says that its links are 'asqtad", files["asqtada"]),
                                ("action hisq is asked for", (fat, files["asqtada"][1]))):
                with self.assertRaisesRegex(md.InputError, words):
                    md.improved(self.lattice, *pair, "hisq")

    def test_eigen(self):
        with self.assertRaisesRegex(md.UnreachedError, "all 4 modes converged, but 1 restart left none"):
            md.eigen(self.lattice, modes=4, max_restarts=1)
        modes = md.eigen(self.lattice, modes=4)
        want = report("eigen", LATTICE, "--modes", "4")["eigenvalues"]
        self.assertTrue(np.allclose(modes.values, want, rtol=1e-9) and modes.residuals.max() < 1e-8)
        self.assertEqual((len(modes.vectors), modes.converged), (4, 4))
        v = modes.vectors[-1]
        with self.assertRaises(TypeError):
            modes.vectors[1.7]
        av = -md.hop(self.lattice, md.hop(self.lattice, v, 1), 0)
        self.assertLess(np.linalg.norm(av - modes.values[3] * v), 1e-8)
        all_of_them = np.array(modes.vectors).reshape(4, -1)
        self.assertTrue(np.allclose(all_of_them.conj() @ all_of_them.T, np.eye(4), atol=1e-10))
        b = random_field(self.field, 6)
        plain, deflated = (md.solve(self.lattice, b, mass=0.02, modes=m) for m in (None, modes))
        self.assertLess(deflated.iterations, plain.iterations)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "modes.h5")
            modes.save(path)
            self.assertTrue(np.array_equal(md.load_eigen(self.lattice, path).values, modes.values))

    def test_refusals(self):
        b = random_field(self.field)
        for words, call in (
                ("nowhere.lime cannot be read", lambda: md.load("nowhere.lime")),
                ("naive|asqtad|hisq|wilson|domainwall|mobius, got 'fast'", lambda: md.solve(self.lattice, b, action="fast")),
                ("did you mean 'block'", lambda: md.solve(self.lattice, b, solver="blocks")),
                ("backend", lambda: md.solve(self.lattice, b, backend="abacus")),
                ("mass must be above 0", lambda: md.solve(self.lattice, b, mass=-1)),
                ("sources must have the shape (3, 8, 4, 4, 4, 3)", lambda: md.solve(self.lattice, b[..., :2])),
                ("extents must be even", lambda: md.Lattice(self.lattice.links[:3])),
                ("links must have the shape", lambda: md.Lattice(b)),
                ("one of mpi4py", lambda: md.load(LATTICE, comm=1))):
            with self.assertRaises(md.InputError) as caught:
                call()
            self.assertIn(words, str(caught.exception))
            self.assertEqual(caught.exception.status, 2)
            self.assertEqual(str(pickle.loads(pickle.dumps(caught.exception))), str(caught.exception))
        self.assertTrue(issubclass(md.InputError, ValueError) and issubclass(md.InputError, md.Error))
        with self.assertRaises(TypeError):
            md.solve(self.lattice, b, colour="red")

    def test_arguments(self):
        lattice, b = self.lattice, random_field(self.field)
        quark, modes, links = md.Quark(lattice, n_rhs=3), md.eigen(lattice, 1), lattice.links
        for words, call in (
                ("modes must be an integer", lambda: md.eigen(lattice, modes=2**32 + 1)),
                ("seed must be an integer", lambda: md.eigen(lattice, seed=-1)),
                ("sweeps must be an integer", lambda: md.generate((4, 4, 4, 4), 5.7, sweeps=2**32 + 1)),
                ("max_iter must be an integer", lambda: md.solve(lattice, b, max_iter=2**31)),
                ("n_rhs must be an integer", lambda: md.source(lattice, "wall:0", n_rhs=2.5)),
                ("n_rhs must be that of the sources, 3, got 5", lambda: md.solve(lattice, b, n_rhs=5)),
                ("a Lattice of thin ones", lambda: md.smear(md.smear(lattice), "ape")),
                ("a Lattice of thin ones", lambda: md.smear(links)),
                ("one of mpi4py", lambda: md.load(LATTICE, comm=links)),
                ("a Lattice or Links, got None", lambda: md.solve(None, b)),
                ("a Lattice or Links, got 'x'", lambda: md.source("x", "wall:0")),
                ("a Lattice or Links, got None", lambda: md.improved(None, links, links)),
                ("n_rhs must be an integer", lambda: md.Quark(lattice, n_rhs=None)),
                ("parity must be an integer", lambda: quark.hop(b, 1.0)),
                ("Ls must be an integer", lambda: md.Quark(lattice, "mobius", Ls=4.5)),
                ("dims must be 4 numbers, each an integer", lambda: md.generate((2.5, 2, 2, 2), 5.7)),
                ("dims must be 4 numbers, got", lambda: md.Lattice(links, dims=(4, 4, 4, 8, 2))),
                ("grid must be 4 numbers", lambda: md.load(LATTICE, grid=2)),
                ("source must be 4 numbers", lambda: md.pion_correlator(lattice, source=(0, 0, 0, 0.5))),
                ("imaginary_mu must be a finite number", lambda: md.Quark(lattice, imaginary_mu=np.nan)),
                ("tol must be a finite number", lambda: md.solve(lattice, b, tol=np.inf)),
                ("beta must be a finite number", lambda: md.generate((4, 4, 4, 4), None)),
                ("mass must be a finite number", lambda: md.solve(lattice, b, mass="a")),
                ("mass must be a finite number", lambda: quark.apply(b, 1j)),
                ("action must be a text", lambda: md.solve(lattice, b, action=None)),
                ("action must be a text", lambda: md.smear(lattice, action=5)),
                ("words must be a text", lambda: md.source(lattice, 5)),
                ("spins must be 1 or 4, got 2", lambda: md.source(lattice, "random:1", spins=2)),
                ("a word must be a text", lambda: md.measure("--lattices", "a\0b")),
                ("path must be the path of a file", lambda: md.load("a\0b")),
                ("path must be the path of a file", lambda: modes.save("")),
                ("path must be the path of a file", lambda: lattice.save(5)),
                ("tells none; end it in .h5", lambda: lattice.save("x.odd")),
                ("modes must be Eigenmodes, got 5", lambda: md.solve(lattice, b, modes=5)),
                ("modes must be Eigenmodes", lambda: md.solve(lattice, b, modes=quark)),
                ("links must have the shape", lambda: md.improved(lattice, [1], [2])),
                ("links must be numbers, got None", lambda: md.improved(lattice, None, None)),
                ("two arrays or two files", lambda: md.improved(lattice, links, "a.lime")),
                ("right-hand sides of a field", lambda: md.source(lattice, "point:0,0,0,0", n_rhs=0)),
                ("got 0", lambda: md.pion_correlator(lattice, n_rhs=0)),
                ("a field must be numbers", lambda: md.hop(lattice, np.ma.masked_greater(b[0].real, 0))),
                ("links are of asqtad, got action hisq", lambda: md.solve(md.smear(lattice, "asqtad"), b, action="hisq")),
                ("nersc files hold thin links, got fat links", lambda: md.smear(lattice, "fat7").save("fat.nersc")),
                ("must have no suffix that stands for links, got x.nersc", lambda: modes.save("x.nersc")),
                ("a field must be numbers", lambda: md.hop(lattice, "wall:0"))):
            with self.assertRaises(md.InputError) as caught:
                call()
            self.assertRegex(str(caught.exception), f"^[^\n]*{words}[^\n]*$")
        made = md.generate(np.array((4, 4, 4, 4)), np.float32(5.7), sweeps=np.int64(1), seed=2**64 - 1)
        self.assertLess(made.plaquette, 1)

    def test_handles_outlive_names(self):
        vectors = md.eigen(md.load(LATTICE), modes=2).vectors
        self.assertAlmostEqual(np.linalg.norm(vectors[0]), 1)
        own = md.Context()  # beside the default one, and closed before it
        self.assertEqual(md.load(LATTICE, comm=own).plaquette, self.lattice.plaquette)

    def test_without_the_library(self):
        code = ("import minidirac as md\ntry: md.load('x')\n"
                "except md.MachineError as e: print(e.status, e)\nprint(md.jackknife([1, 2, 3])[0])")
        run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "MINIDIRAC_LIBRARY": "/none.so"},
                             stdout=subprocess.PIPE, text=True, check=True)
        self.assertRegex(run.stdout, r"(?s)3 /none.so cannot be loaded.*MINIDIRAC_LIBRARY.*\n2.0\n")


if __name__ == "__main__":
    unittest.main()
