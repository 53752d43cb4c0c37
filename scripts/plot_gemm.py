#!/usr/bin/env python3
"""Plots the CSV or JSON report of `minidirac bench gemm` to a PNG.

  plot_gemm.py ladder.csv ladder.png                 GFLOP/s over size, a line per kernel
  plot_gemm.py ladder.csv share.png --share          share of the library reference instead
  plot_gemm.py ladder.csv bars.png --bars            one bar per kernel, for each of its shapes

The size axis is m = n = k for square shapes, k for a sweep of k alone, else 2 m n k in flops.
"""

import compare
from plotting import caption, decades, few_ticks, pyplot, read_rows as read_any, save


REFERENCES = ("cublas", "openblas", "scalapack")
STYLES = {"double": "-", "single": "-", "tf32": "--", "half": "-.", "bf16": ":"}
# One colour per kernel in every picture.
KERNELS = {
    "naive": "#999999", "cpu_tiled": "#56b4e9", "openblas": "#0072b2", "cublas": "#000000", "k0": "#fde0a0",
    "k1": "#f6c667", "k2": "#eda63a", "k3": "#e08214", "k4": "#c86408", "k5": "#a84b05", "k6": "#873603",
    "k7": "#5f2500", "wmma_simple": "#c9a0dc", "wmma_tiled": "#8f5bb0", "wgmma": "#d6006c", "dmma": "#009e73",
    "block_cyclic": "#56b4e9", "summa": "#d55e00", "scalapack": "#000000",
}


def read_rows(path, column="gflops_kernel"):
    """Rows that have a name, a size and numbers, one above 0 in the column at least; and the report."""
    rows, report = read_any(path)
    if not rows:
        raise compare.BadInput(f"{path}: no rows; make it with minidirac bench gemm --{'json' if path.endswith('.json') else 'csv'} {path}")
    for name in ("kernel", "precision", "m", "n", "k", "gflops_kernel", "vs_reference"):
        if name not in rows[0]:
            raise compare.BadInput(f"{path}: no column '{name}'; make it with minidirac bench gemm --csv")
    with compare.reading(path, "rows of bench gemm"):
        for row in rows:
            if not row["kernel"] or not row["precision"]:
                raise compare.BadInput(f"{path} has a row without kernel or precision; give what minidirac wrote")
            for name in ("m", "n", "k"):
                row[name] = int(float(row[name]))
            for name in ("gflops_kernel", "vs_reference", "seconds_min", "seconds_max"):
                value_of(row, name)
        if not any(value_of(row, column) > 0 for row in rows):
            way = "; name the library among --kernels" if column == "vs_reference" else "; give what minidirac wrote"
            raise compare.BadInput(f"{path} has no {column} above 0{way}")
    return rows, report


def size_axis(rows):
    """The label of the axis and the function from a row to its place."""
    if all(r["m"] == r["n"] == r["k"] for r in rows):
        return "m = n = k", lambda r: r["m"]
    if len({(r["m"], r["n"]) for r in rows}) == 1:
        return f"k at m x n = {rows[0]['m']} x {rows[0]['n']}", lambda r: r["k"]
    return "2 m n k, flops", lambda r: 2 * r["m"] * r["n"] * r["k"]


def label_of(row, many):
    ranks = f", {row['ranks']} ranks" if row.get("ranks", "1") != "1" else ""
    return row["kernel"] + (f" {row['precision']}" if many else "") + ranks


def value_of(row, column):
    return float(row[column]) if row.get(column) else float("nan")


def plot_lines(axes, rows, column):
    name, place = size_axis(rows)
    many = len({r["precision"] for r in rows}) > 1
    lines, styles = {}, {}
    for row in rows:
        if column == "vs_reference" and row["kernel"] in REFERENCES:
            continue  # 1 by definition
        label = label_of(row, many)
        lines.setdefault(label, []).append((place(row), value_of(row, column)))
        styles[label] = STYLES.get(row["precision"], "-") if many else "-"
    if column == "vs_reference":
        axes.axhline(1, color="#000000", linewidth=1)
    for label, points in lines.items():
        axes.plot(*zip(*sorted(points)), color=KERNELS.get(label.split()[0].split(":")[0]),
                  linestyle=styles[label], marker="o", markersize=3, linewidth=1, label=label)
    axes.set_xlabel(name)
    if name.startswith("k at"):
        few_ticks(axes.xaxis, [place(row) for row in rows])
    if name.startswith("2 m"):
        axes.set_xscale("log")


def plot_bars(axes, rows, column):
    shapes = list(dict.fromkeys((r["m"], r["n"], r["k"]) for r in rows))
    many = len({r["precision"] for r in rows}) > 1
    labels = list(dict.fromkeys(label_of(r, many) for r in rows))
    width = 0.8 / len(shapes)
    for s, shape in enumerate(shapes):
        of_shape = {label_of(r, many): value_of(r, column)
                    for r in rows if (r["m"], r["n"], r["k"]) == shape}
        one = len(shapes) == 1  # then a bar has the colour of its kernel, else that of its shape
        axes.bar([i + s * width for i in range(len(labels))],
                 [of_shape.get(label, float("nan")) for label in labels], width,
                 color=[KERNELS.get(label.split()[0].split(":")[0], "#777777") for label in labels] if one else None,
                 label="x".join(map(str, shape)))
    axes.set_xticks([i + 0.4 - width / 2 for i in range(len(labels))], labels, rotation=30,
                    ha="right")


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("csv")
    parser.add_argument("png")
    parser.add_argument("--share", action="store_true", help="share of the library reference")
    parser.add_argument("--bars", action="store_true", help="bars by kernel, not lines over size")
    parser.add_argument("--log", action="store_true", help="logarithmic value axis")
    parser.add_argument("--title", default="")
    parser.add_argument("--caption", help="machine and date, where the rows are CSV, which does not say them")
    options = parser.parse_args()
    column = "vs_reference" if options.share else "gflops_kernel"
    rows, report = read_rows(options.csv, column)
    figure, axes = pyplot().subplots(figsize=(8, 5))
    (plot_bars if options.bars else plot_lines)(axes, rows, column)
    axes.set_ylabel("share of the library reference" if options.share else "GFLOP/s")
    axes.set_title(options.title)
    if options.log:
        axes.set_yscale("log")
        decades(axes.yaxis, [value for row in rows if (value := value_of(row, column)) > 0])
    else:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(fontsize="small", ncols=2)
    caption(figure, options.caption or report)
    figure.tight_layout()
    save(figure, options.png, 150)


if __name__ == "__main__":
    with compare.refusals("plot_gemm.py"):
        main()
