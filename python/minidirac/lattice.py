"""Lattices of thin links, and the fat and long links of an action."""
from __future__ import annotations

import functools
import os
from ctypes import byref, c_char_p, c_double, c_int
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Dict, Optional, Sequence, Tuple, Union, cast

import numpy as np

from .arrays import complex_array
from .library import CMeans, Context, Handle, InputError, argument, context, library, shown

Four = Tuple[int, int, int, int]


@dataclass(frozen=True)
class Layout:
    """Extents x, y, z, t: of the lattice, of this rank's block, where that begins; ranks along each."""

    dims: Four
    local: Four
    origin: Four
    grid: Four


@dataclass(frozen=True)
class Means:
    """Of the links: Re tr / 3 of plaquettes (all, space-space, space-time) and of links, and the
    largest deviation of a link from SU(3)."""

    plaquette: float
    plaquette_ss: float
    plaquette_st: float
    link_trace: float
    unitarity_deviation: float


class OnLayout:
    """What has a layout and arrays of it."""

    context: Context
    _lattice: Handle

    @functools.cached_property
    def layout(self) -> Layout:
        """Extents of the lattice and of this rank's block."""
        c = library().md_lattice_layout(self._lattice)
        return Layout(*(cast(Four, tuple(part)) for part in (c.dims, c.local, c.origin, c.grid)))

    @property
    def dims(self) -> Four:
        """Extents x, y, z, t."""
        return self.layout.dims

    @property
    def shape(self) -> Four:
        """Extents of this rank's arrays: t, z, y, x."""
        x, y, z, t = self.layout.local
        return t, z, y, x


class Lattice(OnLayout):
    """Thin links. `links[t, z, y, x, mu, row, column]` are bare: no phases, no boundary sign.

    On several ranks they are the block of the rank (`layout`), or the whole lattice, the same on all
    ranks, of which each takes its block; `dims` are then to be given with a block."""

    def __init__(self, links: Any, dims: Optional[Sequence[int]] = None, grid: Optional[Sequence[int]] = None,
                 comm: Any = None):
        links = complex_array(links, (-1, -1, -1, -1, 4, 3, 3), "links")
        request = library().md_lattice_defaults()
        request.assign(dims=dims if dims is not None else links.shape[3::-1], grid=grid)
        self._made("md_lattice_create", context(comm), byref(request))
        if links.shape[:4] != self.shape and links.shape[3::-1] == self.dims:
            layout = self.layout
            block = [slice(o, o + n) for o, n in zip(layout.origin[::-1], layout.local[::-1])]
            links = np.ascontiguousarray(links[tuple(block)])
        links = complex_array(links, (*self.shape, 4, 3, 3), "the rank's links")
        self.context.call("md_lattice_set", self._lattice, links.ctypes)

    def _made(self, function: str, on: Context, *arguments: Any, parent: Any = None) -> "Lattice":
        self.context = on
        self._lattice = on.make(function, "md_lattice_destroy", parent or on, *arguments)
        self._links: Dict[str, Links] = {}
        return self

    @property
    def links(self) -> np.ndarray:
        """A new array of the links."""
        array = np.empty((*self.shape, 4, 3, 3), dtype=np.complex128)
        library().md_lattice_get(self._lattice, array.ctypes)
        return array

    @functools.cached_property
    def means(self) -> Means:
        """Plaquettes, the trace of links, and how far they are from SU(3)."""
        c = CMeans()
        self.context.call("md_lattice_observe", self._lattice, byref(c))
        return Means(*(getattr(c, field.name) for field in fields(Means)))

    @property
    def plaquette(self) -> float:
        """Re tr / 3, mean of the six planes; 1 on a cold lattice."""
        return self.means.plaquette

    def save(self, path: Any, precision: str = "double", replace: bool = False) -> None:
        """Writes the links in the format of the path's suffix (.h5, .lime, .ildg, .milc, .nersc)."""
        self.context.call("md_lattice_write", self._lattice, argument("path", path, Path),
                          argument("precision", precision, c_char_p), replace)

    def __repr__(self) -> str:
        return f"<minidirac.Lattice {'x'.join(map(str, self.dims))}>"


def load(path: Any, grid: Optional[Sequence[int]] = None, ignore_checksum: bool = False,
         comm: Any = None) -> Lattice:
    """The lattice of a file of any format that `minidirac` reads."""
    request = library().md_lattice_defaults()
    request.assign(grid=grid, ignore_checksum=ignore_checksum)
    name = argument("path", path, Path)
    return Lattice.__new__(Lattice)._made("md_lattice_read", context(comm), name, byref(request))


def generate(start: Union[Lattice, Sequence[int]], beta: float, sweeps: int = 1, overrelax: int = 4, seed: int = 1,
             first: int = 0, space: str = "host", comm: Any = None) -> Lattice:
    """A new lattice after sweeps `first`, first + 1, ... of a Markov chain of the Wilson action at beta = 6/g^2:
    each a heatbath of all links and `overrelax` microcanonical updates, on the "host" or the "device". Start is
    a lattice, or extents x, y, z, t for unit links. The links depend on the numbers alone, as `minidirac generate`."""
    if isinstance(start, Lattice):
        if comm is not None and comm is not start.context:
            raise InputError("a lattice to start from has its communicator; leave comm out")
        made = Lattice(start.links, start.dims, start.layout.grid, start.context)
    else:
        request = library().md_lattice_defaults().assign(dims=start)
        made = Lattice.__new__(Lattice)._made("md_lattice_create", context(comm), byref(request))
    chain = library().md_chain_defaults(argument("beta", beta, c_double))
    chain.assign(sweeps=sweeps, overrelax=overrelax, seed=seed, first=first, space=space)
    made.context.call("md_lattice_sweep", made._lattice, byref(chain))
    return made


class Links(OnLayout):
    """The link fields of an action. `fat` and `long` are new arrays, of the shape of Lattice.links;
    those of naive are the thin links and None. Solves, hops and eigenvectors take it as a lattice."""

    def __init__(self, lattice: Lattice, action: str, function: str, *arguments: Any):
        self.action = action
        self.context = on_layout(lattice).context
        self._lattice = lattice._lattice  # not the Lattice, which keeps Links
        self._handle = self.context.make(function, "md_improved_destroy", self._lattice, *arguments)

    def _field(self, field: int) -> np.ndarray:
        array = np.empty((*self.shape, 4, 3, 3), dtype=np.complex128)
        self.context.call("md_improved_get", self._handle, field, array.ctypes)
        return array

    @property
    def fat(self) -> np.ndarray:
        """Of one-hop terms; the thin links of naive."""
        return self._field(0)

    @property
    def long(self) -> Optional[np.ndarray]:
        """Of three-hop terms, with the coefficient of the action; None of others than asqtad and hisq."""
        return self._field(1) if self.action in ("asqtad", "hisq") else None

    def __repr__(self) -> str:
        return f"<minidirac.Links {self.action} {'x'.join(map(str, self.dims))}>"


def _recipe(action: str) -> Any:
    defaults = library().md_smearing_defaults(argument("action", action, c_char_p))
    return defaults.assign(recipe=action)


def smear(lattice: Lattice, action: str = "hisq", u0: Optional[float] = None,
          naik_epsilon: Optional[float] = None, alpha: Optional[float] = None, rho: Optional[float] = None,
          steps: Optional[int] = None, space: str = "host") -> Union[Links, Lattice]:
    """Links of an action ("asqtad" with u0, "hisq" with naik_epsilon, "naive") from thin ones; or a
    lattice of links by "fat7" (u0), "ape" (alpha, steps) or "stout" (rho, steps)."""
    if not isinstance(lattice, Lattice):
        raise InputError(f"links are smeared of a Lattice of thin ones, got {shown(lattice)}")
    how = _recipe(action)
    how.assign(u0=u0, naik_epsilon=naik_epsilon, alpha=alpha, rho=rho, steps=steps, space=space)
    if action in ("fat7", "ape", "stout"):
        return Lattice.__new__(Lattice)._made("md_smear_lattice", lattice.context, byref(how),
                                              parent=lattice._lattice)
    return Links(lattice, action, "md_improved_make", byref(how))


def on_layout(lattice: Any) -> OnLayout:
    """A Lattice or Links as they are; an InputError for what is neither."""
    if not isinstance(lattice, OnLayout):
        raise InputError(f"a lattice must be a Lattice or Links, got {shown(lattice)}; make one by load")
    return lattice


def improved(lattice: Lattice, fat: Any, long: Any, action: str = "hisq") -> Links:
    """Links of "asqtad" or "hisq" from arrays of the rank's fat and long ones, or from two files of
    them, whose phases are found and taken off. The lattice lends its layout alone."""
    name = argument("action", action, c_char_p)
    files = [isinstance(links, (str, bytes, os.PathLike)) for links in (fat, long)]
    if files[0] != files[1]:
        raise InputError("fat and long links must be two arrays or two files, got one of each")
    if files[0]:
        paths = argument("fat", fat, Path), argument("long", long, Path)
        return Links(lattice, action, "md_improved_read", name, *paths)
    arrays = [complex_array(a, (*on_layout(lattice).shape, 4, 3, 3), "links") for a in (fat, long)]
    return Links(lattice, action, "md_improved_set", name, *(a.ctypes for a in arrays))


def links_of(lattice: Union[Lattice, Links], action: str) -> Links:
    """Links as they are; those of an action on a lattice, which keeps the last that were made."""
    if isinstance(lattice, Links):
        if action not in ("naive", lattice.action):  # the first where none is named
            raise InputError(f"the links are of {lattice.action}, got action {action}; leave it out")
        return lattice
    on_layout(lattice)
    how = _recipe(action)
    if action not in lattice._links:
        lattice._links.clear()
        lattice._links[action] = Links(lattice, action, "md_improved_make", byref(how))
    return lattice._links[action]


def fermion(owner: OnLayout, count: int, space: str = "host", spins: int = 1) -> Handle:
    """Zeros of double."""
    create = "md_spinor_create" if spins == 4 else "md_fermion_create"
    count, where = argument("n_rhs", count, c_int), argument("space", space, c_char_p)
    return on_layout(owner).context.make(create, "md_fermion_destroy", owner._lattice, count, b"double", where)
