"""Figures of studies, by matplotlib and the backend that is in use; returned, neither shown nor saved."""
from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy as np

from .library import InputError
from .statistics import Fit, effective_mass, format_error, jackknife
from .study import Study

MARKERS = "osD^vP*X"


def _figure(study: Study, x: str, y: str) -> Tuple[Any, Any]:
    """A figure with the study's command, commit and ensemble below."""
    import matplotlib.pyplot

    figure, axes = matplotlib.pyplot.subplots(figsize=(8, 5.4), constrained_layout=True)
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    about, names = study.attributes, [path.rsplit("/", 1)[-1] for path in study.lattices]
    ensemble = names[0] if len(names) == 1 else f"{len(names)} lattices, {names[0]} to {names[-1]}"
    ensemble += f", {' x '.join(map(str, study.dims))}"
    command, commit = str(about.get("command_line", "")), about.get("commit", "not told")
    words = [command if len(command) <= 150 else command[:147] + "...", f"commit {commit}, {about.get('date_utc', '')}; {ensemble}"]
    figure.supxlabel("\n".join(words).replace("$", r"\$"), fontsize=6, color="#555555")
    return figure, axes


def _legend(axes: Any) -> None:
    """Above the picture, where it covers no point."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, fontsize="x-small", frameon=False)


def _fit(study: Study, case: Tuple[str, float, str], momentum: Any, width: int) -> Optional[Fit]:
    """Correlated where the bins suffice, else not; None where there is none."""
    for correlated in (True, False):
        try:
            fit = study.fit(*case, momentum, width=width, correlated=correlated)
        except InputError:
            continue
        if fit.error < fit.mass:
            return fit
    return None


def plot_correlators(study: Study, function: Optional[Callable[[np.ndarray], Any]] = None, label: str = "C(t)",
                     width: int = 1, fits: bool = True) -> Any:
    """All correlators of a study, or a function of them such as effective_mass, points of one t beside each other.
    With `fits` the bands of Study.fit where they fit, of these two, and the masses in the legend. An InputError where
    nothing is to be drawn."""
    measured = [(case, momentum, jackknife(study.pion(*case, momentum), function, width))
                for case in study.cases() for momentum in study.momenta if not np.isnan(study.pion(*case, momentum)).any()]
    found = [points for points in measured if np.isfinite(points[2][0]).any()]
    if not found:
        raise InputError(f"a picture of {label} needs finite values, got none of {', '.join(study.sources)}; "
                         "measure another source")
    figure, axes = _figure(study, "t from the source, lattice units", label)
    for i, (case, momentum, (value, error)) in enumerate(found):
        shift = min(0.08, 0.6 / len(found)) * (i - (len(found) - 1) / 2)
        name = f"{case[0]} m={case[1]:g} {case[2]}" + (f" p={momentum}" if any(momentum) else "")
        fit = _fit(study, case, momentum, width) if fits and function in (None, effective_mass) else None
        if fit:
            name += f": {format_error(fit.mass, fit.error)}"
            t = np.linspace(*fit.range, 100)
            middle, half = fit.curve(t) if function is None else (np.full(100, fit.mass), np.full(100, fit.error))
            axes.fill_between(t + shift, middle - half, middle + half, color=f"C{i % 10}", alpha=0.3, linewidth=0)
        axes.errorbar(np.arange(len(value)) + shift, value, np.nan_to_num(error), fmt=MARKERS[(i // 10 + i % 2) % len(MARKERS)], markersize=3,
                      capsize=2, color=f"C{i % 10}", label=name)  # no bars of one lattice
    if function is None:
        axes.set_yscale("log")
    _legend(axes)
    return figure


def plot_condensates(study: Study, width: int = 1) -> Any:
    """Chiral condensates over the masses, those of one mass beside each other; an InputError where there are none."""
    found = [(action, source) for action in study.actions for source in study.sources
             if not np.isnan([study.condensate(action, m, source)[0] for m in study.masses]).any()]
    if not found:
        raise InputError(f"a picture of condensates needs values at all masses, got none of {', '.join(study.sources)}; "
                         "measure a source of noise")
    figure, axes = _figure(study, "quark mass, lattice units", "tr M^-1 / V")
    step = 0.01 * (max(study.masses) - min(study.masses))
    for i, (action, source) in enumerate(found):
        points = [jackknife(study.condensate(action, m, source)[0], None, width) for m in study.masses]
        value, error = np.transpose(points)
        shift = step * (i - (len(found) - 1) / 2)
        axes.errorbar(np.array(study.masses) + shift, value, np.nan_to_num(error), fmt=MARKERS[i % len(MARKERS)], capsize=2,
                      label=f"{action} {source}")
    _legend(axes)
    return figure
