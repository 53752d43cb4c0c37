"""miniDirac for Python: lattices, staggered Dirac operators, solves, eigenvectors and correlators by
libminidirac, and what `minidirac` writes.

    import minidirac as md
    lattice = md.load("inputs/beta5.7_4x4x4x8.lime")
    correlator = md.pion_correlator(lattice, mass=0.05, action="hisq")

Arrays are of numpy, complex128: links [t, z, y, x, mu, row, column], bare, and fermions [rhs, t, z, y,
x, colour]. What the library refuses is a minidirac.Error. docs/python.md is the page about it.
"""
from .arrays import DeviceArray
from .lattice import Lattice, Links, generate, improved, load, smear
from .library import Context, Error, InputError, MachineError, UnreachedError, context, version
from .modes import Eigenmodes, eigen, load_eigen
from .operators import Quark, Solution, hop, pion_correlator, solve, source
from .statistics import Fit, autocorrelation_time, effective_mass, fit_mass, fold, jackknife
from .study import Study, correlator, measure, read_links, read_modes, read_propagator, read_report

__all__ = [
    "Context", "DeviceArray", "Eigenmodes", "Error", "Fit", "InputError", "Lattice", "Links", "MachineError", "Quark",
    "Solution", "Study", "UnreachedError", "autocorrelation_time", "context", "correlator", "effective_mass", "eigen",
    "fit_mass", "fold", "generate", "hop", "improved", "jackknife", "load", "load_eigen", "measure",
    "pion_correlator", "read_links", "read_modes", "read_propagator", "read_report", "smear", "solve", "source",
    "version",
]
