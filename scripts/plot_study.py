#!/usr/bin/env python3
"""Draws a study of `minidirac measure`.

usage: plot_study.py STUDY.h5 [-o PREFIX]

Writes PREFIX-correlator.png, PREFIX-mass.png and, of two masses or more, PREFIX-condensate.png.
docs/study.md says what the numbers are. Needs numpy, h5py and matplotlib.
"""
import argparse
import os
import sys

from plotting import pyplot

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", help="HDF5 file of minidirac measure")
    parser.add_argument("-o", "--output", default="study", help="prefix of the pictures [study]")
    parser.add_argument("--bin", type=int, default=1, help="lattices in a bin of the jackknife [1]")
    options = parser.parse_args()
    pyplot()
    try:
        from minidirac import Study, effective_mass
        from minidirac.plots import plot_condensates, plot_correlators

        study = Study(options.study)
    except (ImportError, OSError, ValueError, KeyError) as fault:
        sys.exit(f"plot_study.py: {options.study}: {fault}")
    pictures = {"correlator": plot_correlators(study, width=options.bin),
                "mass": plot_correlators(study, effective_mass, "effective mass", options.bin)}
    if study.has_condensates() and len(study.masses) > 1:
        pictures["condensate"] = plot_condensates(study, options.bin)
    for name, figure in pictures.items():
        figure.savefig(f"{options.output}-{name}.png", dpi=150)


if __name__ == "__main__":
    main()
