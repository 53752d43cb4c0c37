#!/usr/bin/env python3
"""Reads what miniDirac writes, and does statistics on it. One file; needs numpy, h5py for HDF5
files, matplotlib for pictures.

    from minidirac import Study, read_report, read_propagator, jackknife
    study = Study("study.h5")
    mean, error = jackknife(study.pion("naive", 0.1, "point:0,0,0,0"))
    mass, error = jackknife(study.pion("naive", 0.1, "point:0,0,0,0"), effective_mass)

As a program it draws a study: minidirac.py STUDY.h5 [-o PREFIX] writes PREFIX-correlator.png,
PREFIX-mass.png and, of two masses or more, PREFIX-condensate.png. docs/study.md says what the
numbers are.
"""
import argparse
import json
import sys

try:
    import numpy as np
except ImportError:
    np = None


def need(name):
    """The package of that name; ends the program with how to get it where it is missing."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        sys.exit(f"this script needs {name}; install it with apt-get install python3-{name}, or pip")


def read_report(path):
    """A report of --json as a dictionary; numbers that JSON has no word for become NaN."""
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    if report.get("schema_version") != 1:
        raise ValueError(f"{path} is no report of schema version 1")

    def numbers(value):
        if isinstance(value, dict):
            return {key: numbers(item) for key, item in value.items()}
        if isinstance(value, list) and value and all(v is None or isinstance(v, (int, float)) for v in value):
            return [float("nan") if v is None else v for v in value]
        return [numbers(item) for item in value] if isinstance(value, list) else value

    return numbers(report)


def _attributes(thing):
    return {k: v.decode() if isinstance(v, bytes) else v for k, v in thing.attrs.items()}


def _read(path, dataset, attributes_of):
    with need("h5py").File(path, "r") as file:
        if dataset not in file:
            raise ValueError(f"{path} has no {dataset}")
        return file[dataset][...], _attributes(file[attributes_of])


def read_links(path):
    """Links U[t, z, y, x, mu, row, column] of a lattice in HDF5, and their attributes."""
    return _read(path, "/gauge/links", "/gauge/links")


def read_propagator(path):
    """The solution x[rhs, t, z, y, x, colour] of a file of `solve --output`, and its attributes."""
    return _read(path, "/propagator/solution", "/propagator/solution")


def read_modes(path):
    """Eigenvalues of -Deo Doe, vectors[mode, t, z, y, x/2, colour] on even sites, and attributes."""
    vectors, attributes = _read(path, "/modes/vectors", "/modes")
    if vectors.dtype.names:  # half: h5py has no complex numbers of it
        vectors = vectors["r"].astype(np.float32) + 1j * vectors["i"]
    return np.atleast_1d(attributes["eigenvalues"]), vectors * attributes.get("scale", 1.0), attributes


def correlator(solution, momentum=(0, 0, 0), origin=(0, 0, 0, 0)):
    """C(t), t from the origin: the sum of cos(p (x - y)) |x|^2 over space, colours and right-hand
    sides of a solution of read_propagator."""
    norm2 = (np.abs(solution) ** 2).sum(axis=(0, 5))
    phase = 0.0
    for axis, (n, y) in enumerate(zip(momentum, origin)):
        shape = [1, 1, 1]
        extent = norm2.shape[3 - axis]
        shape[2 - axis] = extent
        phase = phase + (2 * np.pi * n * (np.arange(extent) - y) / extent).reshape(shape)
    return np.roll((norm2 * np.cos(phase)).sum(axis=(1, 2, 3)), -origin[3])


class Study:
    """A file of `measure`. Arrays are over lattices first; `attributes` says who made the file."""

    def __init__(self, path):
        with need("h5py").File(path, "r") as file:
            if "study" not in file:
                raise ValueError(f"{path} is no study")
            group = file["study"]
            self.attributes = _attributes(group)
            self.arrays = {name: group[name][...] for name in group}
        text = lambda words: [w.decode() for w in words]
        self.lattices, self.checksums = text(self.arrays.pop("lattice")), text(self.arrays.pop("checksum"))
        self.arrays.pop("links_checksum", None)
        self.dims = [int(d) for d in self.attributes["dims"]]
        self.actions = self.attributes["actions"].split()
        self.sources = self.attributes["sources"].split()
        self.masses = [float(m) for m in np.atleast_1d(self.attributes["masses"])]
        momenta = np.atleast_1d(self.attributes["momenta"]).reshape(-1, 3)
        self.momenta = [tuple(int(n) for n in p) for p in momenta]

    def _place(self, action, mass, source):
        return self.actions.index(action), self.masses.index(float(mass)), self.sources.index(source)

    def pion(self, action, mass, source, momentum=(0, 0, 0)):
        """C[lattice, t], t from the source; NaN where the source gives none."""
        place = self._place(action, mass, source)
        return self.arrays["pion"][(slice(None), *place, self.momenta.index(tuple(momentum)))]

    def condensate(self, action, mass, source):
        """tr M^-1 / V [lattice], and its error from noise."""
        place = (slice(None), *self._place(action, mass, source))
        return self.arrays["condensate"][place], self.arrays["condensate_error"][place]

    def plaquette(self):
        return self.arrays["plaquette"]

    def polyakov_loop(self):
        return self.arrays["polyakov_loop"] @ np.array([1, 1j])

    def cases(self):
        """(action, mass, source) of all that was measured."""
        return [(a, m, s) for a in self.actions for m in self.masses for s in self.sources]


def jackknife(values, function=None, width=1):
    """Value and error of a function of means over axis 0, bins of at least `width` left out one
    after the other; without a function, of the mean itself."""
    values = np.asarray(values, dtype=float)
    count = len(values)
    bins = max(1, count // max(1, width))
    function = function or (lambda mean: mean)
    value = np.asarray(function(values.mean(axis=0)))
    if bins < 2:
        return value, np.full_like(value, np.nan)
    edges = [b * count // bins for b in range(bins + 1)]
    rest = [np.delete(values, slice(edges[b], edges[b + 1]), axis=0).mean(axis=0) for b in range(bins)]
    samples = np.array([function(mean) for mean in rest])
    squares = ((samples - samples.mean(axis=0)) ** 2).sum(axis=0)
    return value, np.sqrt(squares * (bins - 1) / bins)


def effective_mass(c):
    """arcosh((C(t-1) + C(t+1)) / (2 C(t))), C periodic; NaN at t = 0 and where there is none."""
    ratio = (np.roll(c, 1) + np.roll(c, -1)) / (2 * c)
    mass = np.full(len(c), np.nan)
    good = ratio >= 1
    good[0] = False
    mass[good] = np.arccosh(ratio[good])
    return mass


def autocorrelation_time(values):
    """Integrated autocorrelation time, 1/2 for independent values, and its error: window of five
    times itself."""
    off = np.asarray(values, dtype=float) - np.mean(values)
    count, variance = len(off), np.mean(off**2)
    if count < 4 or not variance > 0:
        return float("nan"), float("nan")
    tau, window = 0.5, 0
    while window < count // 2 and not (window > 0 and window >= 5 * tau):
        window += 1
        tau += (off[:-window] * off[window:]).sum() / (count - window) / variance
    return tau, abs(tau) * np.sqrt(2 * (2 * window + 1) / count)


def _pyplot():
    matplotlib = need("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def plot_correlators(study, path, function=None, label="C(t)", width=1):
    """All correlators of a study, or a function of them such as effective_mass."""
    figure, axes = _pyplot().subplots(figsize=(8, 5), constrained_layout=True)
    for action, mass, source in study.cases():
        for momentum in study.momenta:
            c = study.pion(action, mass, source, momentum)
            if np.isnan(c).any():
                continue
            value, error = jackknife(c, function, width)
            name = f"{action} m={mass:g} {source}" + (f" p={momentum}" if any(momentum) else "")
            axes.errorbar(np.arange(len(value)), value, error, fmt="o", markersize=3, capsize=2, label=name)
    if function is None:
        axes.set_yscale("log")
    axes.set_xlabel("t from the source")
    axes.set_ylabel(label)
    axes.legend(fontsize="x-small")
    axes.set_title(f"{'x'.join(map(str, study.dims))}, {len(study.lattices)} lattices")
    figure.savefig(path, dpi=150)


def plot_condensates(study, path, width=1):
    figure, axes = _pyplot().subplots(figsize=(8, 5), constrained_layout=True)
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
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", help="HDF5 file of minidirac measure")
    parser.add_argument("-o", "--output", default="study", help="prefix of the pictures [study]")
    parser.add_argument("--bin", type=int, default=1, help="lattices in a bin of the jackknife [1]")
    options = parser.parse_args()
    for name in ("numpy", "h5py", "matplotlib"):
        need(name)
    try:
        study = Study(options.study)
    except (OSError, ValueError, KeyError) as fault:
        sys.exit(f"minidirac.py: {options.study}: {fault}")
    plot_correlators(study, f"{options.output}-correlator.png", width=options.bin)
    plot_correlators(study, f"{options.output}-mass.png", effective_mass, "effective mass", options.bin)
    noise = any(not np.isnan(study.condensate(*case)[0]).any() for case in study.cases())
    if noise and len(study.masses) > 1:
        plot_condensates(study, f"{options.output}-condensate.png", options.bin)


if __name__ == "__main__":
    main()
