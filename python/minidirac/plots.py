"""Figures of studies, by matplotlib and the backend that is in use; returned, neither shown nor saved."""
from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy as np

from .statistics import jackknife
from .study import Study


def _axes() -> Tuple[Any, Any]:
    import matplotlib.pyplot

    return matplotlib.pyplot.subplots(figsize=(8, 5), constrained_layout=True)


def plot_correlators(study: Study, function: Optional[Callable[[np.ndarray], Any]] = None, label: str = "C(t)",
                     width: int = 1) -> Any:
    """All correlators of a study, or a function of them such as effective_mass."""
    figure, axes = _axes()
    for action, mass, source in study.cases():
        for momentum in study.momenta:
            c = study.pion(action, mass, source, momentum)
            if np.isnan(c).any():
                continue
            value, error = jackknife(c, function, width)
            name = f"{action} m={mass:g} {source}" + (f" p={momentum}" if any(momentum) else "")
            error = np.nan_to_num(error)  # no bars of one lattice
            axes.errorbar(np.arange(len(value)), value, error, fmt="o", markersize=3, capsize=2, label=name)
    if function is None:
        axes.set_yscale("log")
    axes.set_xlabel("t from the source")
    axes.set_ylabel(label)
    axes.legend(fontsize="x-small")
    axes.set_title(f"{'x'.join(map(str, study.dims))}, {len(study.lattices)} lattices")
    return figure


def plot_condensates(study: Study, width: int = 1) -> Any:
    """Chiral condensates over the masses."""
    figure, axes = _axes()
    for action in study.actions:
        for source in study.sources:
            points = [jackknife(study.condensate(action, m, source)[0], None, width) for m in study.masses]
            if np.isnan([p[0] for p in points]).any():
                continue
            value, error = np.transpose(points)
            axes.errorbar(study.masses, value, error, fmt="o", capsize=2, label=f"{action} {source}")
    axes.set_xlabel("quark mass")
    axes.set_ylabel("tr M^-1 / V")
    axes.legend(fontsize="small")
    return figure
