#!/usr/bin/env python3
"""plot_time_to_solution.py REPORT... -o PICTURE: seconds per right-hand side against the mass.

REPORT: what `minidirac bench solver --modes N --json` wrote; a panel for each, with the same axes. A curve is a way to
solve; a deflated one has the search for its modes shared out over the number of sources beside its name, so that it
counts everything. The broad grey line is CG in double with one right-hand side and without modes.
"""
import argparse
import sys

from plotting import caption, few_ticks, operator_name, pyplot, read_rows

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#8a6d00")
# Of deflated solves, by their place among the numbers of sources.
STYLES = (("--", "s"), ("-.", "^"), (":", "D"), ((0, (1, 3)), "v"))


def iterating(row):
    return "double" if row["inner"] in ("none", "double", "") else f"double/{row['inner']}"


def is_reference(row):
    return row["solver"] == "cg" and row["rhs"] == "1" and iterating(row) == "double"


def method(row):
    """What a curve has in common but for the modes: operator, precisions, right-hand sides at once."""
    return f"{operator_name(row)}, {iterating(row)}, {row['rhs']} rhs"


def add(curves, name, row, seconds):
    if seconds not in ("", None):
        curves.setdefault(name, {})[float(row["mass"])] = float(seconds)


def curves_of(rows, report):
    """{(method, solver, number of sources or None): {mass: seconds per right-hand side}}, and the reference."""
    curves, reference = {}, {}
    for row in rows:
        if row["converged"] != "True":
            continue
        if is_reference(row):
            add(reference, "", row, row["seconds_per_rhs"])
        elif row["solver"] != "deflated":
            add(curves, (method(row), row["solver"], None), row, row["seconds_per_rhs"])
    for raw in report.get("time_to_solution", []):
        row = {key: str(value) for key, value in raw.items()}
        if row["solver"] == "deflated":
            add(curves, (method(row), "deflated", raw["n_sources"]), row, row["seconds_per_rhs"])
    return curves, reference.get("", {})


def panel(axis, rows, report):
    curves, reference = curves_of(rows, report)
    methods = sorted({name[0] for name in curves})
    sources = sorted({name[2] for name in curves if name[2] is not None})
    if reference:
        axis.plot(*zip(*sorted(reference.items())), color="#999999", linewidth=5, alpha=0.5, marker="o", markersize=3,
                  label="cg, double, 1 rhs, no modes")
    for name in sorted(curves, key=lambda n: (methods.index(n[0]), n[1], n[2] or 0)):
        line, marker = ("-", "o") if name[2] is None else STYLES[sources.index(name[2]) % len(STYLES)]
        kind = name[1] if name[2] is None else f"{report['modes']['count']} modes, {name[2]} sources"
        axis.plot(*zip(*sorted(curves[name].items())), linestyle=line, marker=marker, markersize=4,
                  color=COLOURS[methods.index(name[0]) % len(COLOURS)], label=f"{kind}: {name[0]}")
    masses = {mass for points in [reference, *curves.values()] for mass in points}
    seconds = [s for points in [reference, *curves.values()] for s in points.values()]
    axis.set(xscale="log", yscale="log", xlabel="quark mass", title=" x ".join(str(d) for d in report["dims"]))
    axis.grid(alpha=0.3)
    axis.legend(fontsize="x-small", frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return masses, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", metavar="REPORT", nargs="+")
    parser.add_argument("-o", "--output", required=True, metavar="PICTURE")
    arguments = parser.parse_args()
    plot = pyplot()
    panels = [(path, *read_rows(path)) for path in arguments.reports]
    figure, axes = plot.subplots(1, len(panels), figsize=(5.2 * len(panels), 6.4), squeeze=False, sharex=True, sharey=True)
    masses, seconds = set(), []
    for axis, (path, rows, report) in zip(axes[0], panels):
        if not rows or not report or "time_to_solution" not in report:
            sys.exit(f"{path} must be a report of bench solver with --modes, written by --json")
        more, times = panel(axis, rows, report)
        masses |= more
        seconds += times
    if not seconds:
        sys.exit("no solve of these reports reached its tolerance")
    few_ticks(axes[0][0].xaxis, masses)
    few_ticks(axes[0][0].yaxis, [m * 10.0**e for e in range(-5, 7) for m in (1, 2, 5)
                                 if min(seconds) / 2 <= m * 10.0**e <= 2 * max(seconds)])
    axes[0][0].set_ylabel("seconds per right-hand side, search included")
    machines = dict.fromkeys(machine_of(report) for _, _, report in panels)
    caption(figure, "; ".join(machines), f"true residual {panels[0][2]['tolerance']:g}")
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=130)


def machine_of(report):
    """GPU or processor with its ranks, date and commit."""
    machine = report.get("machine") or {}
    device = next((gpu["name"] for gpu in machine.get("gpu") or [] if gpu.get("name")), machine.get("cpu"))
    words = (device, f"{report['ranks']} rank{'s' * (report['ranks'] > 1)}", machine.get("date_utc"), report.get("commit"))
    return ", ".join(str(word) for word in words if word)


if __name__ == "__main__":
    main()
