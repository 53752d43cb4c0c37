"""Reads what the program writes: reports, links, solutions, modes, and studies of `measure`. HDF5 files
need h5py. libminidirac is needed by `measure` alone."""
from __future__ import annotations

import contextlib
import json
import math
from ctypes import c_char_p, c_int
from os import PathLike, fsdecode
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .library import InputError, argument, context
from .statistics import Fit, fit_mass


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise ImportError("HDF5 files need h5py; install it with apt-get install python3-h5py, or pip") from None
    return h5py


@contextlib.contextmanager
def _reading(path: Any) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as fault:
        raise InputError(f"{path} cannot be read: {fault}") from None


# Keys of reports whose null is not a number.
_NULLS = ("machine", "lattice", "devices_are", "sensors", "block")


def read_report(path: Any) -> Dict[str, Any]:
    """A report of --json as a dictionary; numbers that JSON has no word for become NaN."""
    with _reading(path), open(path, encoding="utf-8") as file:
        report = json.load(file)
    if not isinstance(report, dict) or report.get("schema_version") != 1:
        raise InputError(f"{path} is no report of schema version 1")

    def numbers(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item if key in _NULLS else numbers(item) for key, item in value.items()}
        if isinstance(value, list):
            return [numbers(item) for item in value]
        return math.nan if value is None else value

    return numbers(report)


def _text(stored: bytes) -> str:
    return stored.decode(errors="surrogateescape")  # as os.fsdecode does: names of files may be no UTF-8


def _attributes(thing: Any) -> Dict[str, Any]:
    return {k: _text(v) if isinstance(v, bytes) else v for k, v in thing.attrs.items()}


def _values(dataset: Any) -> np.ndarray:
    try:
        return dataset[...]
    except TypeError:  # half, for which h5py before 3.8 wants a complex type that numpy has not
        pairs, h5py = np.empty(dataset.shape, dtype=[("r", "<f4"), ("i", "<f4")]), _h5py()
        dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, pairs, h5py.h5t.py_create(pairs.dtype))
        return pairs


def _read(path: Any, dataset: str, attributes_of: str) -> Tuple[np.ndarray, Dict[str, Any]]:
    with _reading(path), _h5py().File(path, "r") as file:
        if dataset not in file:
            raise InputError(f"{path} has no {dataset}")
        return _values(file[dataset]), _attributes(file[attributes_of])


def read_links(path: Any) -> Tuple[np.ndarray, Dict[str, Any]]:
    """Links U[t, z, y, x, mu, row, column] of a lattice in HDF5, and their attributes."""
    return _read(path, "/gauge/links", "/gauge/links")


def read_propagator(path: Any) -> Tuple[np.ndarray, Dict[str, Any]]:
    """The solution x[rhs, t, z, y, x, colour] of a file of `solve --output`, of quarks with four spins
    [..., spin, colour], and its attributes."""
    return _read(path, "/propagator/solution", "/propagator/solution")


def read_modes(path: Any) -> Tuple[np.ndarray, np.ndarray, Dict[str, Any]]:
    """Eigenvalues of -Deo Doe, vectors[mode, t, z, y, x/2, colour] on even sites, and attributes."""
    vectors, attributes = _read(path, "/modes/vectors", "/modes")
    if vectors.dtype.names:  # half and fixed8: h5py has no complex numbers of them
        step = vectors["scale"][..., None].astype(np.float32) if "scale" in vectors.dtype.names else 1
        vectors = step * (vectors["r"].astype(np.float32) + 1j * vectors["i"].astype(np.float32))
    return np.atleast_1d(attributes["eigenvalues"]), vectors * attributes.get("scale", 1.0), attributes


def correlator(solution: np.ndarray, momentum: Sequence[int] = (0, 0, 0),
               origin: Sequence[int] = (0, 0, 0, 0)) -> np.ndarray:
    """C(t), t from the origin: the sum of cos(p (x - y)) |x|^2 over space, colours, spins and
    right-hand sides of a solution of read_propagator."""
    if np.ndim(solution) not in (6, 7):
        raise InputError(f"a solution must have 6 axes, or 7 with spins, got {np.ndim(solution)}; "
                         "take that of read_propagator")
    momentum, origin = argument("momentum", momentum, c_int * 3), argument("origin", origin, c_int * 4)
    norm2 = (np.abs(solution) ** 2).sum(axis=(0, *range(5, np.ndim(solution))))
    phase = 0.0
    for axis, (n, y) in enumerate(zip(momentum, origin)):
        shape = [1, 1, 1]
        extent = norm2.shape[3 - axis]
        shape[2 - axis] = extent
        phase = phase + (2 * np.pi * n * (np.arange(extent) - y) / extent).reshape(shape)
    return np.roll((norm2 * np.cos(phase)).sum(axis=(1, 2, 3)), -origin[3])


def _index(known: List[Any], wanted: Any, what: str) -> int:
    if wanted not in known:
        raise InputError(f"the study has no {what} {wanted}; it has {', '.join(map(str, known))}")
    return known.index(wanted)


class Study:
    """A file of `measure`. Arrays are over lattices first; `attributes` says who made the file."""

    def __init__(self, path: Any):
        with _reading(path), _h5py().File(path, "r") as file:
            if "study" not in file:
                raise InputError(f"{path} is no study")
            group = file["study"]
            self.attributes = _attributes(group)
            self.arrays = {name: group[name][...] for name in group}
        self.lattices, self.checksums = ([_text(text) for text in self.arrays.pop(name)]
                                         for name in ("lattice", "checksum"))
        self.arrays.pop("links_checksum", None)
        self.dims = [int(d) for d in self.attributes["dims"]]
        self.actions = self.attributes["actions"].split()
        self.sources = self.attributes["sources"].split()
        self.masses = [float(m) for m in np.atleast_1d(self.attributes["masses"])]
        momenta = np.atleast_1d(self.attributes["momenta"]).reshape(-1, 3)
        self.momenta = [tuple(int(n) for n in p) for p in momenta]

    def _place(self, action: str, mass: float, source: str) -> Tuple[int, int, int]:
        mass = next((m for m in self.masses if math.isclose(m, mass)), mass)
        return (_index(self.actions, action, "action"), _index(self.masses, mass, "mass"),
                _index(self.sources, source, "source"))

    def pion(self, action: str, mass: float, source: str, momentum: Sequence[int] = (0, 0, 0)) -> np.ndarray:
        """C[lattice, t], t from the source; NaN where the source gives none."""
        place = self._place(action, mass, source)
        return self.arrays["pion"][(slice(None), *place, _index(self.momenta, tuple(momentum), "momentum"))]

    def fit(self, action: str, mass: float, source: str, momentum: Sequence[int] = (0, 0, 0), **how: Any) -> Fit:
        """fit_mass of these correlators, with its words: `range`, `width`, `correlated`."""
        return fit_mass(self.pion(action, mass, source, momentum), **how)

    def condensate(self, action: str, mass: float, source: str) -> Tuple[np.ndarray, np.ndarray]:
        """tr M^-1 / V [lattice], and its error from noise, of one vector NaN."""
        place = (slice(None), *self._place(action, mass, source))
        return self.arrays["condensate"][place], self.arrays["condensate_error"][place]

    def plaquette(self) -> np.ndarray:
        """Means [lattice] of Re tr / 3."""
        return self.arrays["plaquette"]

    def polyakov_loop(self) -> np.ndarray:
        """Means over space [lattice], complex."""
        return self.arrays["polyakov_loop"] @ np.array([1, 1j])

    def cases(self) -> List[Tuple[str, float, str]]:
        """(action, mass, source) of all that was measured."""
        return [(a, m, s) for a in self.actions for m in self.masses for s in self.sources]

    def has_condensates(self) -> bool:
        """Whether a source of noise was measured."""
        return any(not np.isnan(self.condensate(*case)[0]).any() for case in self.cases())


def measure(*words: Any, comm: Any = None) -> None:
    """`minidirac measure` with these words of its command line; results go to the file of --output."""
    texts = [fsdecode(word) if isinstance(word, PathLike) else str(word) for word in words]
    on, text = context(comm), [argument("a word", text, c_char_p) for text in texts]
    on.call("md_study_perform", on, len(text), (c_char_p * len(text))(*text))
