"""Contexts on communicators of mpi4py, on two ranks; "first": mpi4py starts MPI, else the package does."""
import os
import sys

import numpy as np

import minidirac as md

path = os.path.join(os.environ["MINIDIRAC_INPUTS"], "beta5.7_4x4x4x8.lime")
if sys.argv[1] != "first":
    assert md.load(path).layout.grid != (1, 1, 1, 1)
from mpi4py import MPI  # starts MPI where nobody has

world = MPI.COMM_WORLD
assert world.size == 2
lattice = md.load(path, comm=world)
assert np.prod(lattice.layout.grid) == 2
alone = world.Split(world.rank)
mine = md.load(path, comm=alone)
alone.Free()  # the context has a copy
assert mine.layout.grid == (1, 1, 1, 1) and mine.plaquette == lattice.plaquette
# Ranks work on what is theirs, each with its mass, and together.
mass = 0.1 + 0.1 * world.rank
both = world.allgather(md.pion_correlator(mine, mass=mass, tol=1e-11))
for k, c in enumerate(both):
    assert np.allclose(c, md.pion_correlator(lattice, mass=0.1 + 0.1 * k, tol=1e-11), rtol=1e-9, atol=0)
whole = md.Lattice(mine.links, comm=world)  # each rank takes its block
assert np.array_equal(whole.links, lattice.links)
context = md.context(world)
assert md.load(path, comm=context).context is context
if world.rank == 0:
    try:
        md.load("nowhere.lime", comm=MPI.COMM_SELF)
    except md.InputError as error:
        assert "nowhere.lime" in str(error)
try:
    md.load(path, comm=MPI.COMM_NULL)
except md.InputError as error:
    assert "MPI_COMM_NULL" in str(error)
else:
    raise AssertionError("MPI_COMM_NULL is taken")
