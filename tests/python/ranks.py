"""On two ranks: arrays are blocks of a lattice, and results those of the program on one."""
import json
import os
import subprocess

import numpy as np

import minidirac as md

path = os.path.join(os.environ["MINIDIRAC_INPUTS"], "beta5.7_4x4x4x8.lime")
lattice = md.load(path, grid=(1, 1, 1, 2))
layout = lattice.layout
assert layout.grid == (1, 1, 1, 2) and layout.local == (4, 4, 4, 4) and lattice.shape == (4, 4, 4, 4)
block = lattice.links
again = md.Lattice(block, dims=lattice.dims, grid=layout.grid)
assert np.array_equal(again.links, block) and again.plaquette == lattice.plaquette
whole = np.zeros((8, 4, 4, 4, 4, 3, 3), dtype=complex)
whole[...] = np.eye(3)
whole[layout.origin[3] :][:4] = block
mine = md.Lattice(whole, grid=layout.grid)  # each rank takes its block of the whole
assert np.array_equal(mine.links, block)
c = md.pion_correlator(lattice, mass=0.1, action="hisq", tol=1e-11)
# An environment without the ranks of this run.
alone = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "PMI_"))}
alone.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
if layout.origin == (0, 0, 0, 0):
    words = ["solve", path, "--mass", "0.1", "--action", "hisq", "--tol", "1e-11", "--quiet", "--json", "-"]
    run = subprocess.run([os.environ["MINIDIRAC"], *words], stdout=subprocess.PIPE, check=True, env=alone)
    assert np.allclose(c, json.loads(run.stdout)["pion_correlator"], rtol=1e-9, atol=0)
