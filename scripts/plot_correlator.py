#!/usr/bin/env python3
"""Draws pion correlators C(t) and their effective masses, one line per report.

usage: plot_correlator.py REPORT.json... -o FILE.png

The reports are those of `minidirac solve --json` with a point source. C(t) falls as exp(-m t) while
the pion of mass m dominates, and rises again, for the lattice is periodic in time. The effective
mass of a time slice is arcosh((C(t-1) + C(t+1)) / (2 C(t))): where it is flat it is the pion's mass.
"""
import argparse
import json
import math
import sys

from plotting import caption, pyplot


def effective_mass(c):
    """NaN where three neighbours are no hyperbolic cosine."""
    masses = []
    for t in range(len(c)):
        ratio = (c[t - 1] + c[(t + 1) % len(c)]) / (2 * c[t]) if c[t] else math.nan
        masses.append(math.acosh(ratio) if ratio >= 1 and t > 0 else math.nan)
    return masses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", metavar="REPORT.json", nargs="+", help="of minidirac solve --json")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.png", help="to write")
    arguments = parser.parse_args()
    plot = pyplot()
    figure, (left, right) = plot.subplots(1, 2, figsize=(9, 3.8), constrained_layout=True)
    reports = []
    for i, path in enumerate(arguments.reports):
        try:
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
        except (OSError, ValueError) as error:
            sys.exit(f"{path} cannot be read: {error}")
        c = report.get("pion_correlator")
        if not c:
            sys.exit(f"{path} has no pion correlator; solve with --source point:0,0,0,0 --json {path}")
        name = f"mass {report['mass']:g}, {str(report.get('lattice')).rsplit('/', 1)[-1]}"
        t = [at + min(0.1, 0.5 / len(arguments.reports)) * (i - (len(arguments.reports) - 1) / 2) for at in range(len(c))]
        left.semilogy(t, c, "osD^v"[i % 5] + "-", markersize=4, label=name)
        right.plot(t, effective_mass(c), "osD^v"[i % 5] + "-", markersize=4, label=name)
        reports.append(str((report.get("machine") or {}).get("command_line") or path))
    left.set(xlabel="t in lattice units", ylabel="C(t)", title="pion correlator")
    right.set(xlabel="t in lattice units", ylabel="effective mass in lattice units", title="effective mass", ylim=(0, None))
    left.legend(fontsize="small")
    caption(figure, report, "\n".join(words[:160] for words in reports))
    figure.savefig(arguments.output, dpi=150)


if __name__ == "__main__":
    main()
