#!/usr/bin/env python3
"""Plots of a report of `minidirac validate --json FILE`: errors of the operators and their a-priori
bounds, residual against iteration, deviation of the pion correlator.

usage: plot_validate.py REPORT.json [-o PREFIX]      writes PREFIX-errors.png and PREFIX-solver.png

A column of the first picture is a precision, a colour a backend and packing, as in all pictures; a
dashed line is links in fewer than 18 reals.
"""
import math

import compare
from plotting import PRECISIONS, caption, colour, decades, operator_name, pyplot, save

OPERATIONS = ("Deo", "Doe", "MdagM", "antisymmetry")


def plot_histograms(axis, rows, report):
    """Of the error of Deo over the largest component of the site."""
    lowest, step = report["histogram_lowest_log10"], report["histogram_step_log10"]
    ends = []
    for row in rows:
        counts = row["histogram"]
        total = sum(counts[1:])
        if row["operation"] != "Deo" or total == 0:
            continue
        edges = [lowest + step * i for i in range(len(counts) + 1)]
        line = "-" if str(row["reconstruct"]) == "18" else "--"
        axis.stairs([c / total for c in counts], edges, color=colour(row), linestyle=line)
        filled = [i for i, c in enumerate(counts) if c]
        ends = [*ends, edges[filled[0]] - step, edges[filled[-1] + 1] + step]
    if ends:
        axis.set_xlim(min(ends), max(ends))
    axis.set_xlabel("log10 of error / largest component")


def plot_bounds(axis, rows):
    """Error as a point, bound as a bar, over the operations; cases side by side."""
    cases = list(dict.fromkeys((operator_name(row), row["reconstruct"]) for row in rows))
    for row in rows:
        if row["operation"] not in OPERATIONS:
            continue
        case = cases.index((operator_name(row), row["reconstruct"]))
        place = OPERATIONS.index(row["operation"]) + 0.8 * ((case + 0.5) / len(cases) - 0.5)
        if row["rel_l2_error"]:
            axis.plot(place, row["rel_l2_error"], ".", color=colour(row), markersize=5)
        if row["bound"]:
            axis.plot(place, row["bound"], "_", color=colour(row), markersize=6)
    axis.set_xticks(range(len(OPERATIONS)), ["Deo", "Doe", "$M^†M$", "antisym."])
    axis.set_yscale("log")
    axis.grid(axis="y", alpha=0.3)


def plot_errors(report):
    plot = pyplot()
    from matplotlib.lines import Line2D

    precisions = [p for p in PRECISIONS if any(row["precision"] == p for row in report["rows"])] or ["double"]
    count = len(precisions)
    figure, axes = plot.subplots(2, count, figsize=(2.9 * count + 1.2, 6), sharey="row", squeeze=False)
    for column, precision in enumerate(precisions):
        rows = [row for row in report["rows"] if row["precision"] == precision]
        plot_histograms(axes[0][column], rows, report)
        plot_bounds(axes[1][column], rows)
        axes[0][column].set_title(precision)
    axes[0][0].set_ylabel("share of components of Deo")
    axes[1][0].set_ylabel("relative L2 error; bar: a-priori bound")
    errors = [row[key] for row in report["rows"] for key in ("rel_l2_error", "bound") if row[key]]
    if errors:
        decades(axes[1][0].yaxis, errors)
    names = {operator_name(row): colour(row) for row in report["rows"]}
    handles = [Line2D([], [], color=paint, label=name) for name, paint in sorted(names.items())]
    if handles:
        figure.legend(handles=handles, loc="upper center", ncols=min(6, len(handles)), fontsize="small", frameon=False)
    caption(figure, report)
    figure.tight_layout(rect=(0, 0.02, 1, 0.94))
    return figure


def plot_solver(report):
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(11, 4.4), constrained_layout=True)
    kinds = list(dict.fromkeys((row["precision"], row["inner"]) for row in report["solver"]))
    named = set()
    for row in report["solver"]:
        kind = (row["precision"], row["inner"])
        name = row["precision"] if row["inner"] == "none" else f"{row['precision']}, inner {row['inner']}"
        style = {"color": f"C{kinds.index(kind)}", "label": None if kind in named else name}
        if row.get("residual_history"):
            left.semilogy(row["residual_history"], **style)
            named.add(kind)
        if row["reachable_residual"] and row["inner"] == "none":
            left.axhline(row["reachable_residual"], color=style["color"], linestyle=":")
        deviations = [abs(p) if p else math.nan for p in row["correlator_percent"]]
        if any(d == d for d in deviations):
            right.semilogy(deviations, "o-", markersize=4, color=style["color"])
    left.set(xlabel="iteration", ylabel="residual; dotted: the true one at the end")
    right.set(xlabel="t", ylabel="deviation of the pion correlator in per cent")
    if named:
        left.legend(fontsize="small")
    figure.suptitle(f"{str(report.get('lattice')).split('/')[-1]}, mass {report.get('mass', 0):g}", fontsize="medium")
    caption(figure, report)
    return figure


def read(path):
    report = compare.document(path)
    if not {"histogram_lowest_log10", "rows", "solver"} <= set(report):
        raise compare.BadInput(f"{path} must be a report of validate, got one of {compare.shown(report.get('command'))}; "
                               "give what minidirac validate --json wrote")
    return report


def show(options):
    pyplot()
    report = read(options.report)
    with compare.reading(options.report, "a report of validate"):
        figures = {"errors": plot_errors(report), "solver": plot_solver(report)}
    for name, figure in figures.items():
        save(figure, f"{options.output}-{name}.png", 130)


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("report", help="JSON report of minidirac validate")
    parser.add_argument("-o", "--output", default="validate", help="prefix of the pictures [validate]")
    with compare.refusals(parser.prog):
        show(parser.parse_args())


if __name__ == "__main__":
    main()
