"""Dirac operators: hops, solves, pion correlators."""
from __future__ import annotations

from ctypes import byref, c_char_p, c_double, c_int
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from .arrays import Given, assign_field, check_shape, copied, given, values_of
from .lattice import Lattice, Links, fermion, links_of
from .library import Handle, InputError, SolveResult, UnreachedError, argument, library, shown


@dataclass(frozen=True)
class Solution:
    """Of M x = b. `residuals` are true ones, |b - M x| / |b| of each right-hand side, in double;
    `history` has the largest residual of the recursion after 0, 1, ... iterations. `x` has the shape of the
    sources, an array of numpy or a DeviceArray."""

    x: Any
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
    for any mass. The words are those of the options of `minidirac`, but for an inner
    precision `auto`, which goes by a mass.

    Fields are arrays [rhs, t, z, y, x, colour], or [t, z, y, x, colour] of one right-hand side, of numpy or with the
    CUDA array interface; results lie where they lie. Of the actions "wilson", "domainwall" and "mobius" they are
    [..., spin, colour], and what hop and apply take of the last two [..., slice, spin, colour]."""

    def __init__(self, lattice: Union[Lattice, Links], action: str = "naive", n_rhs: int = 1,
                 backend: str = "auto", packing: str = "auto", precision: str = "double",
                 inner: Optional[str] = None, reconstruct: Union[str, int] = "18", transport: str = "auto",
                 boundary: str = "antiperiodic", imaginary_mu: float = 0.0, flux_quanta: int = 0,
                 Ls: Optional[int] = None, M5: Optional[float] = None, b5: Optional[float] = None,
                 c5: Optional[float] = None):
        self.links = links_of(lattice, action)
        self.n_rhs, self.precision = argument("n_rhs", n_rhs, c_int), precision
        self.spins = spins_of(self.links.action)
        self.slices = (Ls or 12) if self.links.action in WITH_SLICES else 1
        request = library().md_quark_defaults()
        request.assign(n_rhs=self.n_rhs, backend=backend, packing=packing, precision=precision, inner=inner,
                       reconstruct=str(reconstruct), transport=transport, boundary=boundary,
                       imaginary_mu=imaginary_mu, flux_quanta=flux_quanta, slices=Ls, height=M5, b5=b5, c5=c5)
        self.context = self.links.context
        self._handle = self.context.make("md_quark_create", "md_quark_destroy", self.links._handle, byref(request))

    @property
    def backend(self) -> str:
        """The name of the one that works."""
        return library().md_quark_backend(self._handle).decode()

    def _given(self, field: Any, what: str = "a field", slices: int = 1) -> Given:
        values = given(field)
        site = (*((slices,) if slices > 1 else ()), *site_of(self.spins))
        alone = len(values.shape) == 4 + len(site) and self.n_rhs == 1
        check_shape(values.shape, (*((self.n_rhs,) if not alone else ()), *self.links.shape, *site), what)
        return values

    def _through(self, function: str, number: float, field: Any) -> Any:
        """What an operator with a number makes of a field, in fields where it works."""
        values = self._given(field, slices=self.slices)
        out, of = (self.context.make("md_quark_fermion", "md_fermion_destroy", self._handle) for _ in range(2))
        assign_field(self.context, of, values)
        self.context.call(function, self._handle, number, out, of)
        return values_of(self.context, out, values.shape, values.space)

    def hop(self, field: Any, parity: int = 0) -> Any:
        """D field on the sites of one parity, even (0) or odd (1), of x + y + z + t; zero on others. With four spins
        H field, slice by slice."""
        return self._through("md_quark_hop", argument("parity", parity, c_int), field)

    def apply(self, field: Any, mass: float = 0.0) -> Any:
        """M field, which is mass field + D field, with four spins as docs/actions.md has it."""
        return self._through("md_quark_apply", argument("mass", mass, c_double), field)

    def _filled(self, values: Given) -> Handle:
        """A field of double where the values lie."""
        field = fermion(self.links, self.n_rhs, values.space, self.spins)
        assign_field(self.context, field, values)
        return field

    def _solve(self, b: Handle, mass: float, tol: float = 1e-10, max_iter: int = 10000, solver: str = "cg",
               precondition: str = "none", degree: Optional[int] = None, modes: Any = None,
               guess: Any = None, space: str = "host") -> Tuple[Handle, Dict[str, Any]]:
        """The solution, which lies there, and all of a Solution but that."""
        from .modes import Eigenmodes  # which takes Quark from here

        if not isinstance(modes, (Eigenmodes, type(None))):
            raise InputError(f"modes must be Eigenmodes, got {shown(modes)}; make them by eigen")
        first = None
        if guess is not None:
            first = self._filled(self._given(guess.x if isinstance(guess, Solution) else guess, "a guess"))
        request = library().md_solve_defaults(argument("mass", mass, c_double))
        request.assign(tolerance=tol, max_iterations=max_iter, solver=solver, precondition=precondition,
                       degree=degree, modes=modes and modes._handle._as_parameter_,
                       guess=first and first._as_parameter_)
        x, result = fermion(self.links, self.n_rhs, space, self.spins), SolveResult()
        try:
            self.context.call("md_quark_solve", self._handle, byref(request), x, b, byref(result))
            return x, {"residuals": copied(result.residuals, result.n_rhs), "iterations": result.iterations,
                       "converged": result.converged, "history": copied(result.history, result.iterations + 1),
                       "rhs_iterations": copied(result.rhs_iterations, result.n_rhs), "seconds": result.seconds,
                       "gflops": result.gflops, "backend": self.backend}
        finally:
            library().md_solve_result_free(byref(result))

    def solve(self, sources: Any, mass: float = 0.05, space: Optional[str] = None, **words: Any) -> Solution:
        """x of M x = b. Words: `tol` (1e-10), `max_iter` (10000), `solver` ("cg", "block", "auto", "fcg",
        "gcr", "bicgstab"), `precondition` and `degree` of fcg and gcr, `modes` of `eigen` to deflate with, `guess`, an
        array or a Solution. x is returned on the "host" or the "device", else where the sources lie. A solve that
        did not converge says so in `converged`."""
        values = self._given(sources, "sources")
        space = space or values.space
        x, facts = self._solve(self._filled(values), mass, space=space, **words)
        return Solution(x=values_of(self.context, x, values.shape, space), **facts)


WITH_SLICES = ("domainwall", "mobius")  # actions with a fifth dimension
SOLVE_WORDS = ("tol", "max_iter", "solver", "precondition", "degree", "modes", "guess", "space")


def _split(words: Dict[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """What Quark takes, and what its solve takes."""
    return ({k: v for k, v in words.items() if k not in SOLVE_WORDS},
            {k: v for k, v in words.items() if k in SOLVE_WORDS})


def spins_of(action: str) -> int:
    return 4 if action in ("wilson", *WITH_SLICES) else 1


def site_of(spins: int) -> Tuple[int, ...]:
    """The last extents of a field."""
    return (4, 3) if spins == 4 else (3,)


def _count(values: Given, inner: int = 1) -> int:
    """Right-hand sides of an array with so many extents behind those of the lattice."""
    return values.shape[0] if len(values.shape) == 5 + inner else 1


def source(lattice: Union[Lattice, Links], words: str, n_rhs: Optional[int] = None, spins: int = 1) -> np.ndarray:
    """Right-hand sides in the words of --source: "point:x,y,z,t", "wall:t", "random:SEED", ...; of quarks with
    four spins [rhs, t, z, y, x, 4, 3]. Without n_rhs one a colour and spin."""
    if spins not in (1, 4):
        raise InputError(f"spins must be 1 or 4, got {shown(spins)}")
    n_rhs = 3 * spins if n_rhs is None else n_rhs
    field = fermion(lattice, n_rhs, spins=spins)
    lattice.context.call("md_fermion_source", field, argument("words", words, c_char_p))
    return values_of(lattice.context, field, (n_rhs, *lattice.shape, *site_of(spins)))


def solve(lattice: Union[Lattice, Links], sources: Any, mass: float = 0.05, action: str = "naive",
          tol: float = 1e-10, backend: str = "auto", inner: Optional[str] = None,
          boundary: str = "antiperiodic", n_rhs: Optional[int] = None, **words: Any) -> Solution:
    """Solves M x = b for sources [rhs, t, z, y, x, 3], with four spins [rhs, t, z, y, x, 4, 3], or those, n_rhs of
    them, that `source` makes of a text. More words are those of Quark and of Quark.solve."""
    spins = spins_of(lattice.action if isinstance(lattice, Links) else action)
    b = given(source(lattice, sources, n_rhs, spins) if isinstance(sources, str) else sources)
    count = _count(b, len(site_of(spins)))
    if n_rhs not in (None, count):
        raise InputError(f"n_rhs must be that of the sources, {count}, got {shown(n_rhs)}; leave it out")
    operator, how = _split(words)
    quark = Quark(lattice, action, count, backend=backend, inner=inner, boundary=boundary,
                  **operator)
    return quark.solve(b, mass, tol=tol, **how)


def hop(lattice: Union[Lattice, Links], field: Any, parity: int = 0, action: str = "naive",
        boundary: str = "antiperiodic", **words: Any) -> Any:
    """D field on the sites of one parity, Deo (0) or Doe (1); zero on the others. The sum of both is D,
    with four spins H (docs/actions.md). More words are those of Quark."""
    values = given(field)
    of = lattice.action if isinstance(lattice, Links) else action
    inner = len(site_of(spins_of(of))) + (of in WITH_SLICES)
    return Quark(lattice, action, _count(values, inner), boundary=boundary, **words).hop(values, parity)


def pion_correlator(lattice: Union[Lattice, Links], mass: float = 0.05, action: str = "naive",
                    source: Union[Sequence[int], str] = (0, 0, 0, 0), boundary: str = "antiperiodic",
                    n_rhs: Optional[int] = None, **words: Any) -> np.ndarray:
    """C(t), t = 0 .. T - 1 of the lattice: |x|^2 summed over space, colours, spins and the right-hand sides of a
    point source x, y, z, t, or of a source in words with n_rhs of them. More words are those of solve. The same on all
    ranks. A solve that does not converge is an Error."""
    text = source
    if not isinstance(text, str):
        text = "point:" + ",".join(map(str, argument("source", source, c_int * 4)))
    operator, how = _split(words)
    spins = spins_of(lattice.action if isinstance(lattice, Links) else action)
    quark = Quark(lattice, action, 3 * spins if n_rhs is None else n_rhs, boundary=boundary, **operator)
    b = fermion(quark.links, quark.n_rhs, spins=spins)
    quark.context.call("md_fermion_source", b, argument("source", text, c_char_p))
    x, facts = quark._solve(b, mass, **how)
    if not facts["converged"]:
        raise UnreachedError(f"a solve of {text} must converge, got a residual of {max(facts['residuals']):.3e} "
                             f"after {facts['iterations']} iterations; raise max_iter or tol")
    correlator = np.empty(quark.links.dims[3])
    quark.context.call("md_fermion_pion", x, correlator.ctypes)
    return correlator
