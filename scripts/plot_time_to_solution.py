#!/usr/bin/env python3
"""plot_time_to_solution.py REPORT... -o PICTURE [--reference FILE]: seconds per right-hand side against the mass.

REPORT: what `minidirac bench solver --json` wrote, with or without --modes. Reports of one lattice (extents, action,
plaquette to six digits), machine, number of ranks and tolerance share a panel; a solve that two of them have is drawn as
the later one measured it. A curve is a way to solve; a deflated one has the search for its modes shared out over the
number of sources beside its name, so that it counts everything. The broad grey line is CG in double with one right-hand
side and without modes.

FILE: a CSV of what an iteration of CG takes another code, of which time to solution was not measured. Its columns are
label, device (as reports name it), gpus, action, inner (none or a precision), rhs, ms_per_iteration_rhs (milliseconds per
iteration and right-hand side), dims (AxBxCxD, where that was measured), date and source. A panel with this device, action
and as many ranks as gpus gets a black dashed line of seconds that are computed: these milliseconds, times the ratio of
the volumes, times the iterations that CG in the same precisions and with as many right-hand sides took in the reports of
the panel at each mass. In double, where they hardly depend on that number, those with the nearest number of right-hand
sides do. The script prints each product.
"""
import math

import compare
from plotting import caption, device_of, few_ticks, operator_name, pyplot, read_rows, save

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#8a6d00")
# Of deflated solves, by their place among the numbers of sources.
STYLES = (("--", "s"), ("-.", "^"), (":", "D"), ((0, (1, 3)), "v"))
# Of computed lines, by their place among another code's ways to iterate.
MARKERS = ("o", "s", "^", "D", "v")
COLUMNS = ("label", "device", "gpus", "action", "inner", "rhs", "ms_per_iteration_rhs", "dims", "date", "source")
# Rows of solves with several masses at once are no points of this picture.
SEVERAL_MASSES = ("separate", "multishift", "refined")


def iterating(row):
    return "double" if row["inner"] in ("none", "double", "") else f"double/{row['inner']}"


def is_reference(row):
    return solver_of(row) == "cg" and row["rhs"] == "1" and iterating(row) == "double" and reals(row) == "18"


def reals(row):
    return row.get("reconstruct") or "18"


def preconditioner(row):
    """Of a solve with one, with the degree of a polynomial; else nothing."""
    before = row.get("precondition") or "none"
    return "" if before == "none" else f"{before} {row.get('degree') or ''}".strip()


def method(row):
    """What a curve has in common but for the modes: operator, links, precisions, right-hand sides at once."""
    links = "" if reals(row) == "18" else f", {reals(row)} reals"
    return f"{operator_name(row)}{links}, {iterating(row)}, {row['rhs']} rhs"


def solver_of(row):
    return f"{row['solver']} {preconditioner(row)}".strip()


def add(curves, name, row, seconds):
    if seconds not in ("", None):
        curves.setdefault(name, {})[float(row["mass"])] = float(seconds)


def converged_rows(reports):
    return [row for rows, _ in reports for row in rows
            if row["converged"] == "True" and row["solver"] not in SEVERAL_MASSES]


def curves_of(reports):
    """{(method, solver, number of modes, of sources): {mass: seconds per right-hand side}}, and the broad line."""
    curves, reference = {}, {}
    for row in converged_rows(reports):
        if is_reference(row):
            add(reference, "", row, row["seconds_per_rhs"])
        elif row["solver"] != "deflated":
            add(curves, (method(row), solver_of(row), 0, 0), row, row["seconds_per_rhs"])
    for _, report in reports:
        for raw in report.get("time_to_solution", []):
            row = {key: str(value) for key, value in raw.items()}
            if row["solver"] == "deflated":
                name = (method(row), "deflated", report["modes"]["count"], raw["n_sources"])
                add(curves, name, row, row["seconds_per_rhs"])
    return curves, reference.get("", {})


def read_references(path):
    """Rows of the CSV, numbers as numbers."""
    rows = read_rows(path)[0]
    for line, row in enumerate(rows, 2):
        missing = [column for column in COLUMNS if not row.get(column)]
        if missing:
            raise compare.BadInput(f"{path}, line {line} has no {missing[0]}; the columns must be {','.join(COLUMNS)}")
        try:
            row.update(gpus=int(row["gpus"]), ms=float(row["ms_per_iteration_rhs"]), n=int(row["rhs"]))
            row["volume"] = math.prod(int(extent) for extent in row["dims"].split("x"))
        except ValueError as error:
            raise compare.BadInput(f"{path}, line {line} has a bad number: {error}")
    return rows


def way_of(other):
    return f"{other['label']} cg, {iterating(other)}, {other['rhs']} rhs"


def iterations_of(reports, other):
    """{mass: (iterations, their number of right-hand sides)} of our CG that stand for those of a row of the CSV."""
    found = {}
    for row in converged_rows(reports):
        away = abs(int(row["rhs"]) - other["n"])
        if solver_of(row) == "cg" and iterating(row) == iterating(other) and (not away or iterating(row) == "double"):
            found.setdefault(float(row["mass"]), []).append((away, int(row["iterations"]), row["rhs"]))
    return {mass: min(rows, key=lambda row: row[0])[1:] for mass, rows in found.items()}


def computed(reports, other):
    """{mass: seconds per right-hand side} of a row of the CSV, if it is of this panel; prints the products."""
    _, report = reports[0]
    points, work = {}, (report.get("action", "naive"), device_of(report), report["ranks"])
    if (other["action"], other["device"], other["gpus"]) != work:
        return points
    ratio = math.prod(report["dims"]) / other["volume"]
    name = f"{way_of(other)}, {other['gpus']} GPU{'s' * (other['gpus'] > 1)}"
    for mass, (iterations, rhs) in sorted(iterations_of(reports, other).items(), reverse=True):
        points[mass] = 1e-3 * other["ms"] * ratio * iterations
        print(f"{name}, mass {mass:g}: {other['ms']:g} ms x {ratio:.4g} x {iterations} iterations (of {rhs} rhs) = "
              f"{points[mass]:.4g} s")
    return points


def panel(axis, reports, others):
    curves, reference = curves_of(reports)
    methods = sorted({name[0] for name in curves})
    sources = sorted({name[3] for name in curves if name[3]})
    ways = list(dict.fromkeys(way_of(other) for other in others))
    drawn = [reference, *curves.values()]
    if reference:
        axis.plot(*zip(*sorted(reference.items())), color="#999999", linewidth=7, alpha=0.5, marker="o", markersize=4,
                  label="cg, double, 1 rhs, no modes")
    for other in others:
        points = computed(reports, other)
        drawn.append(points)
        if points:
            axis.plot(*zip(*sorted(points.items())), color="black", linewidth=1, linestyle=(0, (5, 3)), zorder=3,
                      marker=MARKERS[ways.index(way_of(other)) % len(MARKERS)], markersize=7, markerfacecolor="none",
                      label=f"computed*: {way_of(other)}")
    for name in sorted(curves, key=lambda n: (methods.index(n[0]), *n[1:])):
        line, marker = STYLES[sources.index(name[3]) % len(STYLES)] if name[3] else ("-", "o")
        kind = f"{name[2]} modes, {name[3]} sources" if name[3] else name[1]
        axis.plot(*zip(*sorted(curves[name].items())), linestyle=line, marker=marker, markersize=4,
                  color=COLOURS[methods.index(name[0]) % len(COLOURS)], label=f"{kind}: {name[0]}")
    _, report = reports[0]
    ranks = f", {report['ranks']} ranks" if report["ranks"] > 1 else ""
    axis.set(xscale="log", yscale="log", xlabel="quark mass", title=" x ".join(str(d) for d in report["dims"]) + ranks)
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small", frameon=False, handlelength=4, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    return {mass for points in drawn for mass in points}, [s for points in drawn for s in points.values()]


def panels_of(paths):
    """Lists of (rows, report), one for each panel, in the order of the command line."""
    panels = {}
    for path in paths:
        rows, report = read_rows(path)
        if not rows or not report or not report.get("dims") or any("seconds_per_rhs" not in row for row in rows):
            raise compare.BadInput(f"{path} must be a report of bench solver, written by --json")
        with compare.reading(path, "a report of bench solver"):
            plaquette = f"{report['plaquette']:.6f}" if report.get("plaquette") is not None else ""
            lattice = (*report["dims"], report.get("action"), plaquette)
            work = (lattice, device_of(report), f"{report['ranks']:d}", f"{report['tolerance']:g}")
            curves_of([(rows, report)])  # which looks at all that a picture takes
            panels.setdefault(work, []).append((rows, report))
    return list(panels.values())


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("reports", metavar="REPORT", nargs="+")
    parser.add_argument("-o", "--output", required=True, metavar="PICTURE")
    parser.add_argument("--reference", metavar="FILE", help="CSV of what an iteration takes another code")
    arguments = parser.parse_args()
    plot = pyplot()
    panels = panels_of(arguments.reports)
    others = read_references(arguments.reference) if arguments.reference else []
    figure, axes = plot.subplots(1, len(panels), figsize=(6.2 * len(panels), 7.6), squeeze=False, sharex=True, sharey=True)
    masses, seconds = set(), []
    for axis, reports in zip(axes[0], panels):
        with compare.reading(", ".join(arguments.reports), "reports of bench solver"):
            more, times = panel(axis, reports, others)
        masses |= more
        seconds += times
    if not seconds:
        raise compare.BadInput("no solve of these reports reached its tolerance")
    few_ticks(axes[0][0].xaxis, masses)
    few_ticks(axes[0][0].yaxis, [m * 10.0**e for e in range(-5, 7) for m in (1, 2, 5)
                                 if min(seconds) / 2 <= m * 10.0**e <= 2 * max(seconds)])
    axes[0][0].set_ylabel("seconds per right-hand side, search included")
    words = [f"true residual {panels[0][0][1]['tolerance']:g}"]
    words += dict.fromkeys(machine_of(report) for reports in panels for _, report in reports)
    if others:
        dims = " and ".join(dict.fromkeys(other["dims"] for other in others))
        words.append(f"* not measured: its milliseconds per iteration at {dims}, scaled by volume, times our iterations")
    caption(figure, "\n".join(words))
    figure.tight_layout()
    save(figure, arguments.output, 130)


def machine_of(report):
    """GPU or processor with its ranks, date and commit."""
    machine = report.get("machine") or {}
    ranks = f"{report['ranks']} rank{'s' * (report['ranks'] > 1)}"
    words = (device_of(report), ranks, machine.get("date_utc"), report.get("commit"))
    return ", ".join(str(word) for word in words if word)


if __name__ == "__main__":
    with compare.refusals("plot_time_to_solution.py"):
        main()
