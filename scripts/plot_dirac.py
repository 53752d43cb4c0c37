#!/usr/bin/env python3
"""plot_dirac.py: GFLOP/s against right-hand sides, with the roofline of compulsory bytes.

A panel per precision, all with the same axes. A colour is a backend and packing, a line style the reals in which a
link is stored. The roofline is what the largest bandwidth of the run allows for links of 18 reals: operations per site
and right-hand side over compulsory bytes, times that bandwidth. Its ceiling is the fastest product of matrices of that
precision, where ROWS are the JSON report of a suite that has some.
"""

import compare
from plotting import PRECISIONS, caption, colour, decades, few_ticks, operator_name, pyplot, read_rows, save

STYLES = {"18": ("-", "o"), "12": ("--", "s"), "8": (":", "^"), "13": ("--", "D"), "9": (":", "v")}


def panel(axis, rows, ceiling):
    bandwidth = max(float(r["bandwidth_gbytes_per_s"]) for r in rows)
    whole = [r for r in rows if r["reconstruct"] == "18"]
    # Operations per site and right-hand side are what the rows say: speed over bytes per second times bytes.
    roof = sorted({(int(r["rhs"]), float(r["gflops"]) / float(r["roofline_fraction"])
                    * bandwidth / float(r["bandwidth_gbytes_per_s"])) for r in whole})
    if roof:
        roof = [(rhs, min(speed, ceiling or speed)) for rhs, speed in roof]
        axis.plot(*zip(*roof), color="#999999", linewidth=4, alpha=0.5, zorder=0)
    if ceiling:
        axis.axhline(ceiling, color="#777777", linestyle=(0, (4, 3)), zorder=0)
    for kind in sorted({(operator_name(r), r["reconstruct"]) for r in rows}):
        mine = [r for r in rows if (operator_name(r), r["reconstruct"]) == kind]
        points = sorted((int(r["rhs"]), float(r["gflops"])) for r in mine)
        line, marker = STYLES.get(kind[1], ("-", "o"))
        axis.plot(*zip(*points), line, marker=marker, markersize=4, color=colour(mine[0]))
    axis.set(xscale="log", yscale="log", xlabel="right-hand sides")
    axis.grid(alpha=0.3)


def legend(figure, rows, ceiling):
    """One for all panels: colours, then line styles, then the roofline."""
    from matplotlib.lines import Line2D

    names = {operator_name(r): colour(r) for r in rows}
    reals = [r for r in STYLES if any(row["reconstruct"] == r for row in rows)]
    handles = [Line2D([], [], color=paint, label=name) for name, paint in sorted(names.items())]
    handles += [Line2D([], [], color="#333333", linestyle=STYLES[r][0], marker=STYLES[r][1], markersize=4,
                       label=f"{r} reals per link") for r in reals]
    handles.append(Line2D([], [], color="#999999", linewidth=4, alpha=0.5, label="roofline, 18 reals"))
    if ceiling:
        handles.append(Line2D([], [], color="#777777", linestyle=(0, (4, 3)), label="fastest product of matrices"))
    figure.legend(handles=handles, loc="upper center", ncols=min(6, len(handles)), fontsize="small", frameon=False)


def draw(arguments, rows, report):
    products = [r for r in rows if r.get("part") == "gemm" and r.get("gflops_kernel")]
    rows = [r for r in rows if r.get("precision") in PRECISIONS and r.get("roofline_fraction")]
    if not rows:
        raise compare.BadInput(f"{arguments.rows} has no rows of the stencil with a roofline; give rows of bench dirac, or bench suite --json")
    precisions = [p for p in PRECISIONS if any(r["precision"] == p for r in rows)]
    size = (2.9 * len(precisions) + 1.2, 4.2)
    figure, axes = pyplot().subplots(1, len(precisions), figsize=size, squeeze=False, sharex=True, sharey=True)
    ceilings = {p: max((float(r["gflops_kernel"]) for r in products if r["precision"] == p), default=None) for p in precisions}
    for axis, precision in zip(axes[0], precisions):
        panel(axis, [r for r in rows if r["precision"] == precision], ceilings[precision])
        axis.set_title(precision)
    few_ticks(axes[0][0].xaxis, [int(r["rhs"]) for r in rows])
    decades(axes[0][0].yaxis, [float(r["gflops"]) for r in rows] + [c for c in ceilings.values() if c])
    axes[0][0].set_ylabel("GFLOP/s")
    legend(figure, rows, any(ceilings.values()))
    dims = rows[0]["dims"]
    dims = dims if isinstance(dims, list) else dims.split("x")
    caption(figure, arguments.caption or report, "Deo on " + " x ".join(map(str, dims)))
    figure.tight_layout(rect=(0, 0, 1, 0.9))
    return figure


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("rows", metavar="ROWS", help="what `minidirac bench dirac` wrote by --csv or --json")
    parser.add_argument("png", help="to write")
    parser.add_argument("--caption", help="machine and date, where ROWS is CSV, which does not say them")
    with compare.refusals(parser.prog):
        arguments = parser.parse_args()
        pyplot()
        rows, report = read_rows(arguments.rows)
        with compare.reading(arguments.rows, "of bench dirac or bench suite"):
            figure = draw(arguments, rows, report)
        save(figure, arguments.png, 130)


if __name__ == "__main__":
    main()
