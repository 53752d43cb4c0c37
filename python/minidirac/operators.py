"""Dirac operators: hops, solves, pion correlators."""
from __future__ import annotations

from ctypes import byref
from dataclasses import dataclass
from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np

from .lattice import Lattice, Links, fermion, links_of
from .library import UNREACHED, Error, Handle, SolveResult, complex_array, copied, library


@dataclass(frozen=True)
class Solution:
    """Of M x = b. `residuals` are true ones, |b - M x| / |b| of each right-hand side, in double;
    `history` has the largest residual of the recursion after 0, 1, ... iterations."""

    x: np.ndarray
    residuals: np.ndarray
    iterations: int
    converged: bool
    history: np.ndarray
    rhs_iterations: np.ndarray
    seconds: float
    gflops: float
    backend: str


class Quark:
    """D on the links of an action, for `n_rhs` right-hand sides at once, to be applied and inverted
    for any mass. The words are those of the options of `minidirac`.

    Fields are arrays [rhs, t, z, y, x, colour], or [t, z, y, x, colour] of one right-hand side."""

    def __init__(self, lattice: Union[Lattice, Links], action: str = "naive", n_rhs: int = 1,
                 backend: str = "auto", packing: str = "auto", precision: str = "double",
                 inner: Optional[str] = None, reconstruct: Union[str, int] = "18", transport: str = "auto",
                 boundary: str = "antiperiodic", imaginary_mu: float = 0.0, flux_quanta: int = 0):
        self.links = links_of(lattice, action)
        self.n_rhs = n_rhs
        request = library().md_quark_defaults()
        request.assign(n_rhs=n_rhs, backend=backend, packing=packing, precision=precision, inner=inner,
                       reconstruct=str(reconstruct), transport=transport, boundary=boundary,
                       imaginary_mu=imaginary_mu, flux_quanta=flux_quanta)
        self.context = self.links.context
        self._handle = self.context.make("md_quark_create", "md_quark_destroy", self.links._handle, byref(request))

    @property
    def backend(self) -> str:
        """The name of the one that works."""
        return library().md_quark_backend(self._handle).decode()

    def _array(self, field: Any, what: str = "a field") -> np.ndarray:
        field = np.asarray(field)
        alone = field.ndim == 5 and self.n_rhs == 1
        return complex_array(field, (*((self.n_rhs,) if not alone else ()), *self.links.shape, 3), what)

    def _field(self, values: Optional[np.ndarray] = None) -> Handle:
        """A field where the operator works."""
        made = self.context.make("md_quark_fermion", "md_fermion_destroy", self._handle)
        if values is not None:
            self.context.call("md_fermion_set", made, values.ctypes)
        return made

    def _values(self, field: Handle, like: np.ndarray) -> np.ndarray:
        values = np.empty(like.shape, dtype=np.complex128)
        self.context.call("md_fermion_get", field, values.ctypes)
        return values

    def hop(self, field: Any, parity: int = 0) -> np.ndarray:
        """D field on the sites of one parity, even (0) or odd (1), of x + y + z + t; zero on others."""
        values = self._array(field)
        out = self._field()
        self.context.call("md_quark_hop", self._handle, parity, out, self._field(values))
        return self._values(out, values)

    def apply(self, field: Any, mass: float = 0.0) -> np.ndarray:
        """M field = mass field + D field."""
        values = self._array(field)
        out = self._field()
        self.context.call("md_quark_apply", self._handle, mass, out, self._field(values))
        return self._values(out, values)

    def _solve(self, b: Handle, mass: float, tol: float = 1e-10, max_iter: int = 10000, solver: str = "cg",
               precondition: str = "none", degree: Optional[int] = None, modes: Any = None,
               guess: Any = None) -> Tuple[Handle, dict]:
        """The solution, and all of a Solution but that."""
        first = None
        if guess is not None:
            values = self._array(guess.x if isinstance(guess, Solution) else guess, "a guess")
            first = fermion(self.links, self.n_rhs)
            self.context.call("md_fermion_set", first, values.ctypes)
        request = library().md_solve_defaults(mass)
        request.assign(tolerance=tol, max_iterations=max_iter, solver=solver, precondition=precondition,
                       degree=degree, modes=modes and modes._handle._as_parameter_,
                       guess=first and first._as_parameter_)
        x, result = fermion(self.links, self.n_rhs), SolveResult()
        try:
            self.context.call("md_quark_solve", self._handle, byref(request), x, b, byref(result))
            return x, {"residuals": copied(result.residuals, result.n_rhs), "iterations": result.iterations,
                       "converged": result.converged, "history": copied(result.history, result.iterations + 1),
                       "rhs_iterations": copied(result.rhs_iterations, result.n_rhs), "seconds": result.seconds,
                       "gflops": result.gflops, "backend": self.backend}
        finally:
            library().md_solve_result_free(byref(result))

    def solve(self, sources: Any, mass: float = 0.05, **words: Any) -> Solution:
        """x of M x = b. Words: `tol` (1e-10), `max_iter` (10000), `solver` ("cg", "block", "auto", "fcg",
        "gcr"), `precondition` and `degree` of fcg and gcr, `modes` of `eigen` to deflate with, `guess`, an
        array or a Solution. A solve that did not converge says so in `converged`."""
        values = self._array(sources, "sources")
        b = fermion(self.links, self.n_rhs)
        self.context.call("md_fermion_set", b, values.ctypes)
        x, facts = self._solve(b, mass, **words)
        return Solution(x=self._values(x, values), **facts)


SOLVE_WORDS = ("tol", "max_iter", "solver", "precondition", "degree", "modes", "guess")


def _split(words: dict) -> Tuple[dict, dict]:
    """What Quark takes, and what its solve takes."""
    return ({k: v for k, v in words.items() if k not in SOLVE_WORDS},
            {k: v for k, v in words.items() if k in SOLVE_WORDS})


def source(lattice: Union[Lattice, Links], words: str, n_rhs: int = 3) -> np.ndarray:
    """Right-hand sides in the words of --source: "point:x,y,z,t", "wall:t", "random:SEED", ..."""
    field = fermion(lattice, n_rhs)
    lattice.context.call("md_fermion_source", field, words.encode())
    values = np.empty((n_rhs, *lattice.shape, 3), dtype=np.complex128)
    lattice.context.call("md_fermion_get", field, values.ctypes)
    return values


def solve(lattice: Union[Lattice, Links], sources: Any, mass: float = 0.05, action: str = "naive",
          tol: float = 1e-10, backend: str = "auto", inner: Optional[str] = None,
          boundary: str = "antiperiodic", **words: Any) -> Solution:
    """Solves M x = b for sources [rhs, t, z, y, x, 3], or those that `source` makes of a text. More
    words are those of Quark and of Quark.solve."""
    b = source(lattice, sources) if isinstance(sources, str) else np.asarray(sources)
    operator, how = _split(words)
    quark = Quark(lattice, action, len(b) if b.ndim == 6 else 1, backend=backend, inner=inner, boundary=boundary,
                  **operator)
    return quark.solve(b, mass, tol=tol, **how)


def hop(lattice: Union[Lattice, Links], field: Any, parity: int = 0, action: str = "naive",
        boundary: str = "antiperiodic", **words: Any) -> np.ndarray:
    """D field on the sites of one parity, Deo (0) or Doe (1); zero on the others. The sum of both is D."""
    field = np.asarray(field)
    quark = Quark(lattice, action, len(field) if field.ndim == 6 else 1, boundary=boundary, **words)
    return quark.hop(field, parity)


def pion_correlator(lattice: Union[Lattice, Links], mass: float = 0.05, action: str = "naive",
                    source: Union[Sequence[int], str] = (0, 0, 0, 0), boundary: str = "antiperiodic",
                    **words: Any) -> np.ndarray:
    """C(t), t = 0 .. T - 1 of the lattice: |x|^2 summed over space, colours and the three colours of a
    point source x, y, z, t, or of a source in words. More words are those of solve. The same on all
    ranks. A solve that does not converge is an Error."""
    text = source if isinstance(source, str) else "point:" + ",".join(str(int(x)) for x in source)
    operator, how = _split(words)
    quark = Quark(lattice, action, 3, boundary=boundary, **operator)
    b = fermion(quark.links, 3)
    quark.context.call("md_fermion_source", b, text.encode())
    x, facts = quark._solve(b, mass, **how)
    if not facts["converged"]:
        raise Error(UNREACHED, f"a solve of {text} must converge, got a residual of {max(facts['residuals']):.3e} "
                    f"after {facts['iterations']} iterations; raise max_iter or tol")
    correlator = np.empty(quark.links.dims[3])
    quark.context.call("md_fermion_pion", x, correlator.ctypes)
    return correlator
