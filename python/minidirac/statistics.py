"""Means, errors and masses of what was measured on many lattices."""
from __future__ import annotations

from ctypes import c_int
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Callable, Optional, Tuple

import numpy as np

from .arrays import check_shape, numbers
from .library import InputError, argument


def _means(values: np.ndarray, width: int) -> np.ndarray:
    """Means over axis 0, each without one bin of at least `width`."""
    count, width = len(values), argument("width", width, c_int)
    if width < 1:
        raise InputError(f"width must be 1 or more, got {width}; give the number of lattices in a bin")
    if count == 0:
        raise InputError("values must be of one lattice or more, got none")
    bins = max(1, count // width)
    edges = [b * count // bins for b in range(bins + 1)]
    return np.array([np.delete(values, slice(a, b), axis=0).mean(axis=0) for a, b in zip(edges, edges[1:])
                     if b - a < count])


def jackknife(values: Any, function: Optional[Callable[[np.ndarray], Any]] = None,
              width: int = 1) -> Tuple[np.ndarray, np.ndarray]:
    """Value and error of a function of means over axis 0, bins of at least `width` left out one
    after the other; without a function, of the mean itself."""
    values = numbers(values, "values", float)
    function = function or (lambda mean: mean)
    samples = np.array([function(mean) for mean in _means(values, width)])
    value = numbers(function(values.mean(axis=0)), "a function of means", float)
    if len(samples) < 2:
        return value, np.full_like(value, np.nan)
    squares = ((samples - samples.mean(axis=0)) ** 2).sum(axis=0)
    return value, np.sqrt(squares * (len(samples) - 1) / len(samples))


def fold(c: Any) -> np.ndarray:
    """The means of C(t) and C(T - t), t = 0 .. T / 2, over the last axis."""
    c = numbers(c, "a correlator", float)
    t = np.arange(c.shape[-1] // 2 + 1)
    return (c[..., t] + c[..., -t]) / 2


def format_error(value: float, error: float) -> str:
    """0.58119(31): the error with two digits, the value to the same place; by the rule of the program's
    tables, src/base/text.h."""
    value, error = float(value), abs(float(error))
    if not np.isfinite(value) or np.isnan(error):
        return f"{value:.12g}"
    if error == 0 or np.isinf(error):
        return f"{value:.12g}({error:g})"

    def exponent(number: float, places: int) -> int:
        return int(f"{number:.{places}e}".split("e")[1])

    two, larger, last = f"{error:.1e}", max(abs(value), error), exponent(error, 1) - 1
    places = exponent(larger, 16) - last
    if places > 16:
        return f"{value:.17g} +- {two}"
    top = exponent(larger, places)
    plain = last <= 0 and top >= -4
    decimals, power = (-last, "") if plain else (top - last, f"e{top:+03d}")
    mantissa = Decimal(value) if plain else Decimal(value).scaleb(-top)
    return f"{mantissa:.{decimals}f}({two[0]}{'.' if decimals == 1 else ''}{two[2]}){power}"


@dataclass(frozen=True)
class Fit:
    """C(t) = amplitude (exp(-mass t) + exp(-mass (T - t))) for t of the range, first and last."""

    mass: float
    error: float
    amplitude: float
    range: Tuple[int, int]
    chi2: float
    freedom: int
    extent: int = field(default=0, repr=False)  # T
    samples: Any = field(default=None, repr=False, compare=False)  # mass and amplitude without each bin, [bin, 2]

    def curve(self, t: Any) -> Tuple[np.ndarray, np.ndarray]:
        """C(t) of the fit at any times, and its jackknife error, widened as that of the mass is."""
        t = np.asarray(t, dtype=float)
        shapes = [a * (np.exp(-m * t) + np.exp(-m * (self.extent - t)))
                  for m, a in [(self.mass, self.amplitude), *self.samples]]
        spread, masses = np.std(shapes[1:], axis=0), np.std(self.samples[:, 0])
        return shapes[0], spread * (self.error / masses if masses > 0 else 0.0)

    def __str__(self) -> str:
        return (f"{format_error(self.mass, self.error)}, t = {self.range[0]} to {self.range[1]}, "
                f"chi^2 {self.chi2:.3g} for {self.freedom} degrees of freedom")


LEAST_MASS, MOST_MASS = 1e-3, 6.0  # of fits


def _cosh(c: np.ndarray, t: np.ndarray, extent: int, weight: np.ndarray) -> Tuple[float, float, float]:
    """Mass, amplitude and chi^2 of the best cosh. The amplitude is linear; the masses are searched in
    ever finer grids."""
    low, high = LEAST_MASS, MOST_MASS
    for _ in range(10):
        masses = np.linspace(low, high, 200)
        shape = np.exp(-np.outer(masses, t)) + np.exp(-np.outer(masses, extent - t))
        weighted = shape @ weight
        amplitude = weighted @ c / (weighted * shape).sum(axis=1)
        rest = c - amplitude[:, None] * shape
        chi2 = ((rest @ weight) * rest).sum(axis=1)
        chi2[~np.isfinite(chi2)] = np.inf  # where exponentials are too small for doubles
        best = int(np.argmin(chi2))
        low, high = masses[max(best - 1, 0)], masses[min(best + 1, 199)]
    if np.isinf(chi2[best]):
        raise InputError(f"chi^2 of a fit must be finite, got none at t = {t[0]} to {t[-1]}; "
                         "scale the correlators or take another range")
    return masses[best], amplitude[best], chi2[best]


def _weight(covariance: np.ndarray, bins: int, correlated: bool) -> np.ndarray:
    """Of chi^2: the inverse of the covariance of slices from so many bins, or of its diagonal."""
    count, deviation = len(covariance), np.sqrt(np.diag(covariance))
    if deviation.min() > 0 and np.isfinite(covariance).all():
        if not correlated:
            return np.diag(1 / np.diag(covariance))
        rank = np.linalg.matrix_rank(covariance / np.outer(deviation, deviation), hermitian=True)
        if rank == count:
            return (bins - count - 2) / (bins - 1) * np.linalg.inv(covariance)
    raise InputError("slices must vary on their own and in the range of doubles, got a singular "
                     f"covariance of {count}; take other lattices, fewer slices or correlated=False")


def _slices(range: Any, last: int) -> Tuple[int, int]:
    """First and last slice of a range, of slices 0 to `last`."""
    first, end = argument("range", range, c_int * 2)
    if not 0 <= first < end <= last:
        raise InputError(f"a range must have 0 <= first < last <= {last}, got {first} and {end}; "
                         "give two slices of the folded correlator")
    return first, end


@np.errstate(all="ignore")  # what is not finite is refused
def fit_mass(correlators: Any, range: Optional[Tuple[int, int]] = None, width: int = 1,
             correlated: bool = True) -> Fit:
    """The mass of correlators[lattice, t], folded, and its jackknife error; correlated: chi^2 has the
    covariances of the time slices, and both allow for what these lose by being estimated (J. Hartlap et al.,
    A&A 464, 399, 2007; S. Dodelson and M. D. Schneider, Phys. Rev. D 88, 063537, 2013), which takes five bins more
    than slices. Without a range all that end at T / 2 are tried, and that of the smallest chi^2 + 2 (slices left
    out) is taken (W. I. Jay and E. T. Neil, Phys. Rev. D 103, 114502, 2021)."""
    correlators = numbers(correlators, "correlators", float)
    check_shape(correlators.shape, (-1, -1), "correlators")
    for lattice, t in np.argwhere(~np.isfinite(correlators)):
        raise InputError(f"correlators must be finite, got {correlators[lattice, t]} of lattice {lattice} at "
                         f"t = {t}; leave such lattices out, or take a source that gives correlators")
    extent, folded = correlators.shape[-1], fold(correlators)
    samples, last = _means(folded, width), extent // 2
    bins = len(samples)
    covariance = np.atleast_2d(np.cov(samples.T, bias=True)) * (bins - 1) if bins > 1 else None
    advice = " or correlated=False" if correlated else ""
    tried = []
    ranges = [(first, last) for first in np.arange(1, last - 1)]
    if range is not None:
        ranges = [_slices(range, last)]
    for first, end in ranges:
        t = np.arange(first, end + 1)
        needed = len(t) + 5 if correlated else 2
        if covariance is None or bins < needed:
            if range is None:
                continue
            raise InputError(f"a {'correlated ' if correlated else ''}fit of {len(t)} slices needs {needed} bins or "
                             f"more, got {bins or 1}; take more lattices, a smaller width{advice}")
        weight = _weight(covariance[np.ix_(t, t)], bins, correlated)
        tried.append((_cosh(folded.mean(axis=0)[t], t, extent, weight), t, weight))
    if not tried:
        raise InputError(f"a fit without a range needs 3 slices and {8 if correlated else 2} bins or more, "
                         f"got {last} and {bins or 1}; take more lattices, a smaller width{advice}")
    (mass, amplitude, chi2), t, weight = min(tried, key=lambda fit: fit[0][2] - 2 * len(fit[1]))
    if not 1.001 * LEAST_MASS < mass < 0.999 * MOST_MASS:  # but for rounding
        raise InputError(f"the mass of a fit must lie between {LEAST_MASS:g} and {MOST_MASS:g}, got none there at "
                         f"t = {t[0]} to {t[-1]}; take another range")
    found = np.array([_cosh(mean[t], t, extent, weight)[:2] for mean in samples])
    square = found[:, 0].var() * (bins - 1)
    if correlated:
        spare = bins - len(t)
        square *= 1 + (len(t) - 2) * (spare - 2) / ((spare - 1) * (spare - 4))
    return Fit(float(mass), float(np.sqrt(square)), float(amplitude), (int(t[0]), int(t[-1])), float(chi2), len(t) - 2,
               extent, found)


def effective_mass(c: Any) -> np.ndarray:
    """arcosh((C(t-1) + C(t+1)) / (2 C(t))), C periodic; NaN at t = 0 and where there is none."""
    c = numbers(c, "a correlator", float)
    check_shape(c.shape, (-1,), "a correlator")
    ratio = (np.roll(c, 1) + np.roll(c, -1)) / (2 * c)
    mass = np.full(len(c), np.nan)
    good = ratio >= 1
    good[0] = False
    mass[good] = np.arccosh(ratio[good])
    return mass


def autocorrelation_time(values: Any) -> Tuple[float, float]:
    """Integrated autocorrelation time, 1/2 for independent values, and its error: window of five
    times itself."""
    values = numbers(values, "values", float)
    check_shape(values.shape, (-1,), "values")
    mean = values.mean()
    off = values - mean
    count, variance = len(off), np.mean(off**2)
    if count < 4 or not variance > (count * np.finfo(float).eps * mean) ** 2:  # equal values: the mean's rounding
        return float("nan"), float("nan")
    tau, window = 0.5, 0
    while window < count // 2 and not (window > 0 and window >= 5 * tau):
        window += 1
        tau += (off[:-window] * off[window:]).sum() / (count - window) / variance
    return tau, abs(tau) * np.sqrt(2 * (2 * window + 1) / count)
