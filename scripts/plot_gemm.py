#!/usr/bin/env python3
"""Plots the CSV of `minidirac bench gemm` to a PNG.

  plot_gemm.py ladder.csv ladder.png                 GFLOP/s over size, a line per kernel
  plot_gemm.py ladder.csv share.png --share          share of the library reference instead
  plot_gemm.py ladder.csv bars.png --bars            one bar per kernel, for each of its shapes

The size axis is m = n = k for square shapes, k for a sweep of k alone, else 2 m n k in flops.
"""
import argparse
import csv
import sys

from plotting import pyplot


def read_rows(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        sys.exit(f"{path}: no rows; make it with minidirac bench gemm --csv {path}")
    for name in ("kernel", "precision", "m", "n", "k", "gflops_kernel", "vs_reference"):
        if name not in rows[0]:
            sys.exit(f"{path}: no column '{name}'; make it with minidirac bench gemm --csv")
    for row in rows:
        for name in ("m", "n", "k"):
            row[name] = int(float(row[name]))
    return rows


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
    return float(row[column]) if row[column] else float("nan")


def plot_lines(axes, rows, column):
    name, place = size_axis(rows)
    many = len({r["precision"] for r in rows}) > 1
    lines = {}
    for row in rows:
        lines.setdefault(label_of(row, many), []).append((place(row), value_of(row, column)))
    for label, points in lines.items():
        axes.plot(*zip(*sorted(points)), marker="o", markersize=3, linewidth=1, label=label)
    axes.set_xlabel(name)
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
        axes.bar([i + s * width for i in range(len(labels))],
                 [of_shape.get(label, float("nan")) for label in labels], width,
                 label="x".join(map(str, shape)))
    axes.set_xticks([i + 0.4 - width / 2 for i in range(len(labels))], labels, rotation=30,
                    ha="right")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv")
    parser.add_argument("png")
    parser.add_argument("--share", action="store_true", help="share of the library reference")
    parser.add_argument("--bars", action="store_true", help="bars by kernel, not lines over size")
    parser.add_argument("--log", action="store_true", help="logarithmic value axis")
    parser.add_argument("--title", default="")
    options = parser.parse_args()
    rows = read_rows(options.csv)
    figure, axes = pyplot().subplots(figsize=(8, 5))
    column = "vs_reference" if options.share else "gflops_kernel"
    (plot_bars if options.bars else plot_lines)(axes, rows, column)
    axes.set_ylabel("share of the library reference" if options.share else "GFLOP/s")
    axes.set_title(options.title)
    if options.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", ncols=2)
    figure.tight_layout()
    figure.savefig(options.png, dpi=150)


if __name__ == "__main__":
    main()
