"""The lowest eigenvectors of -Deo Doe, or of S S^dag."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_double, c_int
from math import nan
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np

from .arrays import copied, values_of
from .lattice import Lattice, Links, fermion
from .library import Handle, argument, library
from .operators import Quark, site_of


class Vectors(Sequence):
    """Vector k is vectors[k], an array [t, z, y, x, colour], of quarks with four spins [..., spin, colour] or
    [..., slice, spin, colour], zero on odd sites, fetched when it is asked for; np.array(vectors) is all of them."""

    def __init__(self, modes: "Eigenmodes"):
        self._modes = modes

    def __len__(self) -> int:
        return len(self._modes.values)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        k = operator.index(k)
        if not -len(self) <= k < len(self):
            raise IndexError(f"vectors are numbered 0 to {len(self) - 1}, got {k}")
        modes, quark = self._modes, self._modes.quark
        if quark.slices > 1:
            if quark.n_rhs > 1 or quark.precision != "double":
                quark = Quark(quark.links, Ls=quark.slices)  # whose fields hold one vector in double
            field = quark.context.make("md_quark_fermion", "md_fermion_destroy", quark._handle)
        else:
            field = fermion(quark.links, 1, spins=quark.spins)
        quark.context.call("md_eigen_vector", modes._handle, k % len(self), field)
        slices = (quark.slices,) if quark.slices > 1 else ()
        return values_of(quark.context, field, (*quark.links.shape, *slices, *site_of(quark.spins)))


class Eigenmodes:
    """`values` of A = -Deo Doe, with four spins of S S^dag, rising, `residuals` |A v - lambda v|, unit `vectors`.
    The lowest `converged` of them are known to be the lowest. solve(modes=...) deflates with them."""

    def __init__(self, quark: Quark, function: str, *arguments: Any):
        self.quark, self.links = quark, quark.links
        self._handle: Handle = quark.context.make(function, "md_eigen_destroy", quark._handle, *arguments)
        count = library().md_eigen_count(self._handle)
        self.values: np.ndarray = copied(library().md_eigen_values(self._handle), count)
        self.residuals = copied(library().md_eigen_residuals(self._handle), count)
        self.converged = library().md_eigen_converged(self._handle)

    @property
    def vectors(self) -> Vectors:
        """Unit vectors of the modes, fetched one by one."""
        return Vectors(self)

    def __repr__(self) -> str:
        return f"<minidirac.Eigenmodes {self.links.action} {len(self.values)} modes>"

    def save(self, path: Any, store: str = "double", replace: bool = False) -> None:
        """A file as of `minidirac eigen`; store is "double", "single", "half" or "fixed8"."""
        self.links.context.call("md_eigen_write", self._handle, argument("path", path, Path),
                                argument("store", store, c_char_p), replace)


def eigen(lattice: Union[Lattice, Links], modes: int = 8, action: str = "naive", tol: float = 1e-8,
          boundary: str = "antiperiodic", block: int = 0, max_restarts: int = 1000, seed: int = 1,
          mass: Optional[float] = None, **words: Any) -> Eigenmodes:
    """The lowest modes, with four spins of a mass. More words are those of Quark. An Error where not all
    converged."""
    quark = Quark(lattice, action, boundary=boundary, **words)
    search = library().md_eigen_defaults(argument("modes", modes, c_int))
    search.assign(block=block, tolerance=tol, max_restarts=max_restarts, seed=seed, mass=mass)
    return Eigenmodes(quark, "md_eigen_find", byref(search))


def load_eigen(lattice: Union[Lattice, Links], path: Any, action: str = "naive",
               boundary: str = "antiperiodic", mass: Optional[float] = None, **words: Any) -> Eigenmodes:
    """The modes of a file of `minidirac eigen`, which belong to these links, action, boundary and mass."""
    quark = Quark(lattice, action, boundary=boundary, **words)
    number = nan if mass is None else argument("mass", mass, c_double)
    return Eigenmodes(quark, "md_eigen_read", number, argument("path", path, Path))
