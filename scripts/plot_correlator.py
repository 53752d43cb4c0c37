#!/usr/bin/env python3
"""Draws pion correlators C(t) and their effective masses, one line per report.

usage: plot_correlator.py REPORT.json... -o FILE.png

The reports are those of `minidirac solve --json` with a point source. C(t) falls as exp(-m t) while
the pion of mass m dominates, and rises again, for the lattice is periodic in time. The effective
mass of a time slice is arcosh((C(t-1) + C(t+1)) / (2 C(t))): where it is flat it is the pion's mass.
A dashed line is of a solve that did not converge.
"""
import json
import math
import sys

import compare
from plotting import caption, machine_of, pyplot, save


def effective_mass(c):
    """NaN where three neighbours are no hyperbolic cosine."""
    masses = []
    for t in range(len(c)):
        ratio = (c[t - 1] + c[(t + 1) % len(c)]) / (2 * c[t]) if c[t] else math.nan
        masses.append(math.acosh(ratio) if ratio >= 1 and t > 0 else math.nan)
    return masses


def read(path):
    """A report with a mass and a correlator of numbers."""
    report = compare.document(path)
    c = report.get("pion_correlator")
    if not c:
        raise compare.BadInput(f"{path} has no pion correlator; solve with --source point:0,0,0,0 --json {path}")
    values = [("a pion correlator", value) for value in (c if isinstance(c, list) else [None])]
    for name, value in [("mass", report.get("mass")), *values]:
        if compare.number(value) is None:
            raise compare.BadInput(f"{name} must be of finite numbers, got {json.dumps(value)} in {path}; "
                                   "give what minidirac solve --json wrote")
    return report


def warn(script, path, report):
    residual, wanted = (compare.shown(report.get(key)) for key in ("relative_residual", "tolerance"))
    print(f"{script}: warning: the residual of {compare.shown(path)} should be at most {wanted}, got {residual}, not converged; "
          "raise --max-iter or --tol", file=sys.stderr)


def draw(paths, reports):
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9, 3.8), constrained_layout=True)
    for i, report in enumerate(reports):
        c, reached = report["pion_correlator"], report.get("converged") is not False
        name = f"mass {report['mass']:g}, {str(report.get('lattice')).rsplit('/', 1)[-1]}" + ", NOT CONVERGED" * (not reached)
        style = {"marker": "osD^v"[i % 5], "linestyle": "-" if reached else "--", "markersize": 4}
        t = [at + min(0.1, 0.5 / len(reports)) * (i - (len(reports) - 1) / 2) for at in range(len(c))]
        left.semilogy(t, c, label=name.replace("$", r"\$"), **style)
        right.plot(t, effective_mass(c), **style)
    left.set(xlabel="t in lattice units", ylabel="C(t)", title="pion correlator")
    right.set(xlabel="t in lattice units", ylabel="effective mass in lattice units", title="effective mass", ylim=(0, None))
    left.legend(fontsize="small")
    commands = [str(machine_of(report).get("command_line") or path) for path, report in zip(paths, reports)]
    caption(figure, reports[-1], "\n".join(words[:160] for words in commands))
    return figure


def show(script, arguments):
    pyplot()
    reports = [read(path) for path in arguments.reports]
    save(draw(arguments.reports, reports), arguments.output, 150)
    for path, report in zip(arguments.reports, reports):
        if report.get("converged") is False:
            warn(script, path, report)


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("reports", metavar="REPORT.json", nargs="+", help="of minidirac solve --json")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.png", help="to write")
    with compare.refusals(parser.prog):
        show(parser.prog, parser.parse_args())


if __name__ == "__main__":
    main()
