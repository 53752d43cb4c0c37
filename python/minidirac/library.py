"""libminidirac by ctypes: where it is, its structures and functions, errors, contexts and handles."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import operator
import os
import reprlib
import sys
import weakref
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

VERSION = "0.2"  # of the structures below
NAME = "libminidirac.so.0"


class Error(RuntimeError):
    """What the library refuses or does not reach, with the message of the program: an UnreachedError,
    an InputError or a MachineError. `status` is the exit code that the program has for it."""

    status = 0


class UnreachedError(Error):
    """The asked result was not reached: a solve that did not converge, lattices that were left out."""

    status = 1


class InputError(Error, ValueError):
    """Arguments, arrays or files that do not make sense; also of the functions of Python alone."""

    status = 2


class MachineError(Error):
    """The environment: no device, no MPI, no library, no memory or disk for it."""

    status = 3


_ERRORS = {error.status: error for error in (UnreachedError, InputError, MachineError)}


def shown(value: Any) -> str:
    """A value of a caller in an error: short, on one line."""
    return " ".join(reprlib.repr(value).split())


def _integer(value: Any, low: int, high: int) -> int:
    if not low <= operator.index(value) <= high:
        raise ValueError
    return operator.index(value)


def _real(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError
    return float(value)


def _text(value: Any) -> bytes:
    text = os.fsencode(value)
    if b"\0" in text:
        raise ValueError
    return text


def _word(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError
    return _text(value)


def _path(value: Any) -> bytes:
    if not os.fspath(value):
        raise ValueError
    return _text(value)


# By kind what an argument must be, and what makes it so or raises.
_KINDS: Dict[Any, Tuple[str, Callable[[Any], Any]]] = {
    c_int: ("an integer within -2^31..2^31-1", lambda value: _integer(value, -2**31, 2**31 - 1)),
    c_uint64: ("an integer within 0..2^64-1", lambda value: _integer(value, 0, 2**64 - 1)),
    c_double: ("a finite number", _real),
    c_char_p: ("a text without zero bytes", _word),
    Path: ("the path of a file, without zero bytes", _path),
}


def argument(name: str, value: Any, kind: Any) -> Any:
    """A value as the library takes it, of a kind of ctypes, of an array of one, or Path; an
    InputError where it cannot be that."""
    many = issubclass(kind, ctypes.Array)
    rule, convert = _KINDS.get(kind._type_ if many else kind, ("", lambda same: same))
    try:
        if not many:
            return convert(value)
        items = [convert(item) for item in value]
        if len(items) == kind._length_:
            return kind(*items)
        rule = f"{kind._length_} numbers"
    except (TypeError, ValueError, OverflowError):
        rule = f"{kind._length_} numbers, each {rule}" if many else rule
    raise InputError(f"{name} must be {rule}, got {shown(value)}; see help(minidirac)")


class _Structure(ctypes.Structure):
    def assign(self, **values: Any) -> "_Structure":
        """Sets fields from arguments; None leaves the default."""
        kinds: Dict[str, Any] = dict(self._fields_)
        for name, value in values.items():
            if value is not None:
                setattr(self, name, argument(_ARGUMENTS.get(name, name), value, kinds[name]))
        return self


# Fields that have another name as arguments.
_ARGUMENTS = {"tolerance": "tol", "max_iterations": "max_iter", "slices": "Ls", "height": "M5",
              "recipe": "action"}


def _structure(name: str, **kinds: Any) -> Any:
    """The class of a structure with these fields, in their order."""
    return type(name, (_Structure,), {"_fields_": list(kinds.items())})


LatticeRequest = _structure("LatticeRequest", dims=c_int * 4, grid=c_int * 4, space=c_char_p, longest_hop=c_int,
                            ignore_checksum=c_bool)
CLayout = _structure("CLayout", dims=c_int * 4, local=c_int * 4, origin=c_int * 4, grid=c_int * 4, local_sites=c_size_t)
CMeans = _structure("CMeans", plaquette=c_double, plaquette_ss=c_double, plaquette_st=c_double, link_trace=c_double,
                    unitarity_deviation=c_double)
ChainRequest = _structure("ChainRequest", beta=c_double, sweeps=c_int, overrelax=c_int, seed=c_uint64, first=c_uint64,
                          space=c_char_p)
Smearing = _structure("Smearing", recipe=c_char_p, space=c_char_p, u0=c_double, naik_epsilon=c_double, alpha=c_double,
                      rho=c_double, steps=c_int)
QuarkRequest = _structure("QuarkRequest", n_rhs=c_int, backend=c_char_p, packing=c_char_p, precision=c_char_p,
                          inner=c_char_p, reconstruct=c_char_p, transport=c_char_p, boundary=c_char_p,
                          imaginary_mu=c_double, flux_quanta=c_int, slices=c_int, height=c_double, b5=c_double,
                          c5=c_double)
SolveRequest = _structure("SolveRequest", mass=c_double, tolerance=c_double, max_iterations=c_int, solver=c_char_p,
                          precondition=c_char_p, degree=c_int, modes=c_void_p, guess=c_void_p)
SolveResult = _structure("SolveResult", converged=c_bool, iterations=c_int, n_rhs=c_int, residual=c_double,
                         seconds=c_double, gflops=c_double, residuals=POINTER(c_double),
                         rhs_iterations=POINTER(c_int), history=POINTER(c_double))
EigenSearch = _structure("EigenSearch", modes=c_int, block=c_int, tolerance=c_double, max_restarts=c_int,
                         seed=c_uint64, mass=c_double)


# Results and arguments of functions; handles and arrays are void pointers.
_STATUS, _HANDLE, _ARRAY, _OUT, _TEXT = c_int, c_void_p, c_void_p, POINTER(c_void_p), c_char_p
_FUNCTIONS: List[Tuple[Any, Any, str]] = [
    (_TEXT, [], "md_version"),
    (_STATUS, [_OUT], "md_context_open_world"),
    (_STATUS, None, "md_context_open_on"),  # its MPI_Comm is a pointer or an int
    (None, [_HANDLE], "md_context_close md_lattice_destroy md_improved_destroy md_fermion_destroy md_quark_destroy "
                      "md_eigen_destroy"),
    (None, [_HANDLE, c_int], "md_context_choose_device"),
    (_TEXT, [_HANDLE], "md_context_message md_quark_backend"),
    (LatticeRequest, [], "md_lattice_defaults"),
    (_STATUS, [_HANDLE, POINTER(LatticeRequest), _OUT], "md_lattice_create"),
    (_STATUS, [_HANDLE, _TEXT, POINTER(LatticeRequest), _OUT], "md_lattice_read"),
    (_STATUS, [_HANDLE, _TEXT, _TEXT, c_bool], "md_lattice_write md_eigen_write"),
    (CLayout, [_HANDLE], "md_lattice_layout"),
    (_STATUS, [_HANDLE, _ARRAY], "md_lattice_set md_fermion_set md_fermion_get md_fermion_set_device "
                                 "md_fermion_get_device md_fermion_pion"),
    (None, [_HANDLE, _ARRAY], "md_lattice_get"),
    (ChainRequest, [c_double], "md_chain_defaults"),
    (_STATUS, [_HANDLE, POINTER(ChainRequest)], "md_lattice_sweep"),
    (_STATUS, [_HANDLE, POINTER(CMeans)], "md_lattice_observe"),
    (Smearing, [_TEXT], "md_smearing_defaults"),
    (_STATUS, [_HANDLE, POINTER(Smearing), _OUT], "md_smear_lattice md_improved_make"),
    (_STATUS, [_HANDLE, _TEXT, _TEXT, _TEXT, _OUT], "md_improved_read"),
    (_STATUS, [_HANDLE, _TEXT, _ARRAY, _ARRAY, _OUT], "md_improved_set"),
    (_STATUS, [_HANDLE, c_int, _ARRAY], "md_improved_get"),
    (_STATUS, [_HANDLE, c_int, _TEXT, _TEXT, _OUT], "md_fermion_create md_spinor_create"),
    (_STATUS, [_HANDLE, _TEXT], "md_fermion_source"),
    (_STATUS, [_HANDLE, c_size_t, _OUT], "md_device_array_create"),
    (None, [_ARRAY], "md_device_array_destroy"),
    (QuarkRequest, [], "md_quark_defaults"),
    (_STATUS, [_HANDLE, POINTER(QuarkRequest), _OUT], "md_quark_create"),
    (_STATUS, [_HANDLE, _OUT], "md_quark_fermion"),
    (_STATUS, [_HANDLE, c_int, _HANDLE, _HANDLE], "md_quark_hop"),
    (_STATUS, [_HANDLE, c_double, _HANDLE, _HANDLE], "md_quark_apply"),
    (SolveRequest, [c_double], "md_solve_defaults"),
    (_STATUS, [_HANDLE, POINTER(SolveRequest), _HANDLE, _HANDLE, POINTER(SolveResult)], "md_quark_solve"),
    (None, [POINTER(SolveResult)], "md_solve_result_free"),
    (EigenSearch, [c_int], "md_eigen_defaults"),
    (_STATUS, [_HANDLE, POINTER(EigenSearch), _OUT], "md_eigen_find"),
    (_STATUS, [_HANDLE, c_double, _TEXT, _OUT], "md_eigen_read"),
    (c_int, [_HANDLE], "md_eigen_count md_eigen_converged"),
    (POINTER(c_double), [_HANDLE], "md_eigen_values md_eigen_residuals"),
    (_STATUS, [_HANDLE, c_int, _HANDLE], "md_eigen_vector"),
    (_STATUS, [_HANDLE, c_int, POINTER(c_char_p)], "md_study_perform"),
]


def find() -> str:
    """MINIDIRAC_LIBRARY of the environment, else the library beside the package, else the system's."""
    beside = Path(__file__).with_name(NAME)
    return os.environ.get("MINIDIRAC_LIBRARY") or (str(beside) if beside.exists() else NAME)


@contextlib.contextmanager
def _waiting() -> Iterator[None]:
    """OpenMP looks at the environment when it is loaded. Unless that says how threads wait, they sleep
    at once where other processes run, else after a brief spin, as those of `minidirac` do: the usual
    long spin takes the cores from the others, and makes both slow. The environment is left as it was."""
    name, value = "GOMP_SPINCOUNT", "10000"
    try:
        if int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]) > 1:  # processes that run, and this one
            name, value = "OMP_WAIT_POLICY", "passive"
    except (OSError, ValueError, IndexError):
        pass
    if {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & set(os.environ):
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The shared library, loaded at the first call."""
    path = find()
    try:
        with _waiting():
            loaded = ctypes.CDLL(path)
    except OSError as fault:
        raise MachineError(f"{path} cannot be loaded ({fault}); install miniDirac, or set "
                    "MINIDIRAC_LIBRARY to its libminidirac.so") from None
    for result, arguments, names in _FUNCTIONS:
        for name in names.split():
            function = getattr(loaded, name, None)
            if function is None:
                raise MachineError(f"{path} must have {name}, got none; install package and library from one source")
            function.restype = result
            function.argtypes = arguments
    if not loaded.md_version().decode().startswith(VERSION + "."):
        raise MachineError(f"{path} must be of version {VERSION}, got {loaded.md_version().decode()}; "
                           "install package and library from one source")
    return loaded


def version() -> str:
    """Of the shared library."""
    return library().md_version().decode()


def _end(function: Any, pointer: c_void_p, process: int, parents: tuple) -> None:
    mpi = sys.modules.get("mpi4py.MPI")
    if os.getpid() == process and not (mpi and mpi.Is_finalized()):  # nor in a child that was forked
        function(pointer)


class Handle:
    """A handle of the library. It keeps what it was made of alive, and is destroyed with the last
    reference, or at exit, the latest first."""

    def __init__(self, destroy: str, pointer: c_void_p, *parents: Any):
        self._as_parameter_ = pointer
        weakref.finalize(self, _end, getattr(library(), destroy), pointer, os.getpid(), parents)


class Context:
    """Ranks that work together. Made by `context`."""

    def __init__(self, communicator: Any = None):
        pointer = c_void_p()
        if communicator is None:
            status = library().md_context_open_world(byref(pointer))
        else:
            status = library().md_context_open_on(_communicator(communicator), byref(pointer))
        self._handle = Handle("md_context_close", pointer)
        self.check(status)

    def check(self, status: int) -> None:
        """Raises the Error of a status that is not MD_OK."""
        if status != 0:
            raise _ERRORS[status](library().md_context_message(self._handle).decode(errors="replace"))

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function that returns a status; a failure becomes an Error."""
        self.check(getattr(library(), function)(*arguments))

    def make(self, function: str, destroy: str, parent: Any, *arguments: Any) -> Handle:
        """The handle that a function assigns to its last argument; `parent` is the first."""
        pointer = c_void_p()
        status = getattr(library(), function)(parent, *arguments, byref(pointer))
        handle = Handle(destroy, pointer, self._handle, parent)
        self.check(status)
        return handle

    @property
    def _as_parameter_(self) -> c_void_p:
        return self._handle._as_parameter_

    def choose_device(self, number: int) -> None:
        """The GPU of the host to use, before anything is on one."""
        library().md_context_choose_device(self, argument("number", number, c_int))


def _communicator(communicator: Any) -> Any:
    """MPI_Comm of a communicator of mpi4py."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(communicator, mpi.Comm):
        raise InputError(f"a communicator must be one of mpi4py, got {shown(communicator)}")
    text, length = ctypes.create_string_buffer(8192), c_int()
    library().MPI_Get_library_version(text, byref(length))
    if text.value.decode().split()[:2] != mpi.Get_library_version().split()[:2]:
        raise MachineError(f"mpi4py and the library must be built with one MPI, got {mpi.Get_library_version()[:20]} "
                           f"and {text.value.decode()[:20]}; install mpi4py from source")
    kind = c_void_p if mpi._sizeof(mpi.Comm) == ctypes.sizeof(c_void_p) else c_int
    return kind.from_address(mpi._addressof(communicator))


@functools.lru_cache(maxsize=None)
def _default() -> Context:
    return Context()


def context(comm: Any = None) -> Context:
    """A context on a communicator of mpi4py; a context as it is; without an argument the default one
    on all ranks, which is opened by the first call that needs it and closed at exit."""
    if comm is None:
        return _default()
    return comm if isinstance(comm, Context) else Context(comm)
