"""What the tests compare with: D and a solve by numpy, free of the library, and reports of the program."""
import json
import os
import subprocess
import unittest

import numpy as np

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LATTICE = os.path.join(TOP, "inputs", "beta5.7_4x4x4x8.lime")


def read_milc(path):
    """Links [t, z, y, x, mu, row, column] of a file of MILC's version 5, big-endian: 96 bytes, then sites."""
    magic, x, y, z, t = np.fromfile(path, ">i4", 5)
    assert magic == 20103
    return np.fromfile(path, ">c8", offset=96).reshape(t, z, y, x, 4, 3, 3).astype(complex)


class Oracle:
    """D of naive links, antiperiodic, and solves with it: M = m + D, D = sum_mu eta_mu [U v(x + mu) - h.c.] / 2."""

    def __init__(self, links):
        self.links = links
        t, z, y, x = np.indices(links.shape[:4])
        sign = [np.ones_like(x), (-1) ** x, (-1) ** (x + y), (-1) ** (x + y + z) * np.where(t == len(links) - 1, -1, 1)]
        self.u = [sign[mu][..., None, None] * links[..., mu, :, :] for mu in range(4)]
        self.odd = (t + z + y + x) % 2 == 1

    def d(self, v):
        out = np.zeros_like(v)
        for mu, u in enumerate(self.u):
            axis = 4 - mu  # of x, y, z, t in [rhs, t, z, y, x, colour]
            out += np.einsum("tzyxab,rtzyxb->rtzyxa", u, np.roll(v, -1, axis)) / 2
            out -= np.roll(np.einsum("tzyxba,rtzyxb->rtzyxa", u.conj(), v), 1, axis) / 2
        return out

    def solve(self, b, mass):
        """CG on (m^2 - D^2) x = (m - D) b."""
        x, r = np.zeros_like(b), mass * b - self.d(b)
        p, norm, end = r, np.vdot(r, r).real, 1e-26 * np.vdot(b, b).real
        while norm > end:
            ap = mass**2 * p - self.d(self.d(p))
            alpha = norm / np.vdot(p, ap).real
            x, r = x + alpha * p, r - alpha * ap
            before, norm = norm, np.vdot(r, r).real
            p = r + norm / before * p
        return x


def report(*words):
    if "MINIDIRAC" not in os.environ:
        raise unittest.SkipTest("the variable MINIDIRAC names no program")
    run = subprocess.run([os.environ["MINIDIRAC"], *words, "--quiet", "--json", "-"], check=True, timeout=120,
                         stdout=subprocess.PIPE, env={**os.environ, "OMPI_MCA_orte_create_session_dirs": "0"})
    return json.loads(run.stdout)
