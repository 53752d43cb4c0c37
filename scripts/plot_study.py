#!/usr/bin/env python3
"""Draws a study of `minidirac measure`.

usage: plot_study.py STUDY.h5 [-o PREFIX]

Writes PREFIX-correlator.png, PREFIX-mass.png and, of two masses or more, PREFIX-condensate.png, and says which;
what has nothing to show is not written. docs/study.md says what the numbers are. Needs numpy, h5py and matplotlib.
"""
import argparse
import os
import sys

import compare
from plotting import pyplot, save

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))


def width(text):
    """As `minidirac measure --bin` takes it."""
    if not 1 <= int(text) <= 2**20:
        raise argparse.ArgumentTypeError(f"must lie in 1 to {2**20}, got {text}")
    return int(text)


def read(path):
    try:
        from minidirac import Study

        return Study(path)
    except ImportError as fault:
        sys.exit(f"plot_study.py: {path}: {fault}")
    except KeyError as fault:
        raise compare.BadInput(f"{path} is no whole study: {fault}; give a file of minidirac measure") from fault
    except (OSError, ValueError) as fault:
        raise compare.BadInput(str(fault)) from fault


def draw(study, bins):
    """Figures by name, of what has something to show; says what has not."""
    from minidirac import InputError, effective_mass
    from minidirac.plots import plot_condensates, plot_correlators

    figures = {}
    ways = {"correlator": lambda: plot_correlators(study, width=bins),
            "mass": lambda: plot_correlators(study, effective_mass, "effective mass", bins),
            "condensate": lambda: plot_condensates(study, bins)}
    for name, way in ways.items():
        try:
            if name == "condensate" and len(study.masses) < 2:
                raise InputError("a picture of condensates needs two masses or more, got one")
            figures[name] = way()
        except InputError as nothing:
            print(f"no {name}: {nothing}")
    return figures


def show(options):
    pyplot()
    figures = draw(read(options.study), options.bin)
    if not figures:
        raise compare.BadInput(f"{options.study} has nothing to draw; measure correlators, or condensates of two masses or more")
    for name, figure in figures.items():
        save(figure, f"{options.output}-{name}.png", 150)
        print(f"wrote {options.output}-{name}.png")


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("study", help="HDF5 file of minidirac measure")
    parser.add_argument("-o", "--output", default="study", help="prefix of the pictures [study]")
    parser.add_argument("--bin", type=width, default=1, help="lattices in a bin of the jackknife [1]")
    with compare.refusals(parser.prog):
        show(parser.parse_args())


if __name__ == "__main__":
    main()
