#!/usr/bin/env python3
"""One picture of one CSV of dense products: square and thin ones, single and double, every kernel.

  plot_gemm_sweep.py dense-sweep.csv dense-sweep.png --report dense-single-small.json
  plot_gemm_sweep.py dense-sweep.csv dense-sweep.png --caption "NVIDIA H200, 2026-11-22, commit 1234567"

scripts/sweep_gemm.sh makes the CSV. All panels share the axis of TFLOP/s; a kernel has one colour everywhere.
"""

import compare
from plot_gemm import KERNELS, REFERENCES, read_rows, value_of
from plotting import caption, decades, pyplot, save


def kernel_of(row):
    return row["kernel"].split(":")[0]


def is_square(row):
    return row["m"] == row["n"] == row["k"]


def draw(axes, rows, place):
    """A line per kernel through the medians, from the shortest to the longest time as a faint band."""
    for kernel in (name for name in KERNELS if any(kernel_of(row) == name for row in rows)):
        points = sorted((place(row), row) for row in rows if kernel_of(row) == kernel)
        x = [at for at, _ in points]
        work = [2e-12 * row["m"] * row["n"] * row["k"] for _, row in points]
        low, high = ([w / value_of(row, key) if value_of(row, key) > 0 else float("nan") for w, (_, row) in zip(work, points)]
                     for key in ("seconds_max", "seconds_min"))
        reference = kernel in REFERENCES
        axes.plot(x, [1e-3 * value_of(row, "gflops_kernel") for _, row in points], color=KERNELS[kernel], label=kernel,
                  linewidth=1.8 if reference else 1.2, linestyle="--" if reference else "-", marker="o", markersize=2.5)
        axes.fill_between(x, low, high, color=KERNELS[kernel], alpha=0.15, linewidth=0)


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("csv")
    parser.add_argument("png")
    parser.add_argument("--report", help="JSON report of a part of the run, for machine, date and commit")
    parser.add_argument("--caption", help="machine and date, where there is no report")
    options = parser.parse_args()
    rows, _ = read_rows(options.csv)
    precisions = [p for p in ("single", "double") if any(row["precision"] == p for row in rows)]
    if not precisions:
        raise compare.BadInput(f"{options.csv}: no rows in single or double; make it with scripts/sweep_gemm.sh")
    thin = [row for row in rows if not is_square(row)]
    columns = 2 if thin else 1
    figure, grid = pyplot().subplots(len(precisions), columns, figsize=(9, 3.3 * len(precisions) + 0.9), sharey=True,
                                     squeeze=False, width_ratios=(3, 2)[:columns] if thin else None)
    for axes_row, precision in zip(grid, precisions):
        here = [row for row in rows if row["precision"] == precision]
        draw(axes_row[0], [row for row in here if is_square(row)], lambda row: row["m"])
        axes_row[0].set_title(f"{precision}, square", fontsize=10)
        axes_row[0].set_xlabel("m = n = k")
        axes_row[0].set_ylabel("TFLOP/s")
        if thin:
            depths = sorted({row["k"] for row in thin})
            draw(axes_row[1], [row for row in here if not is_square(row)], lambda row: depths.index(row["k"]))
            axes_row[1].set_title(f"{precision}, {thin[0]['m']} x {thin[0]['n']}, thin", fontsize=10)
            axes_row[1].set_xlabel("k")
            axes_row[1].set_xticks(range(len(depths)), [str(k) for k in depths])
        for axes in axes_row:
            axes.set_yscale("log")
            axes.grid(alpha=0.3)
    decades(grid[0][0].yaxis, [rate for row in rows if (rate := 1e-3 * value_of(row, "gflops_kernel")) > 0])
    handles = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    order = [name for name in KERNELS if name in handles]
    report = compare.document(options.report) if options.report else options.caption
    caption(figure, report, "medians; bands from the slowest to the fastest repetition")
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    figure.legend([handles[name] for name in order], order, loc="upper center", ncols=-(-len(order) // 2), fontsize="small",
                  frameon=False)
    save(figure, options.png, 150)


if __name__ == "__main__":
    with compare.refusals("plot_gemm_sweep.py"):
        main()
