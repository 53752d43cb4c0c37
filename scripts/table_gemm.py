#!/usr/bin/env python3
"""Markdown table of TFLOP/s and shares of the library reference.

A line per kernel and precision, a column per shape; one shape: a line per kernel with its gain over
the line before.
"""

import compare
from plot_gemm import read_rows


def shape_of(row):
    m, n, k = (int(float(row[name])) for name in ("m", "n", "k"))
    return f"{m}^3" if m == n == k else f"{m} x {n} x {k}"


def number(row):
    return float(row["gflops_kernel"]) / 1e3


def cell(row):
    share = f' ({float(row["vs_reference"]):.2f})' if row.get("vs_reference") else ""
    return f"{number(row):.3g}{share}"


def one_shape(rows):
    print(f"| kernel | precision | TFLOP/s at {shape_of(rows[0])} | share | gain |")
    print("|---" * 5 + "|")
    last = {}
    for row in rows:
        name, before = row["kernel"].split(":")[0], last.get(row["precision"])
        share = f'{float(row["vs_reference"]):.2f}' if row.get("vs_reference") else "-"
        gain = f"{number(row) / before:.2f}" if before and name != "cublas" else ""
        print(f'| {row["kernel"]} | {row["precision"]} | {number(row):.3g} | {share} | {gain} |')
        last[row["precision"]] = number(row)


def many_shapes(rows):
    shapes = list(dict.fromkeys(map(shape_of, rows)))
    lines = list(dict.fromkeys((r["precision"], r["kernel"]) for r in rows))
    cells = {(r["precision"], r["kernel"], shape_of(r)): cell(r) for r in rows}
    print("| precision | kernel |", " | ".join(shapes), "|")
    print("|---" * (2 + len(shapes)) + "|")
    for line in lines:
        print("|", " | ".join(line), "|", " | ".join(cells.get((*line, s), "-") for s in shapes), "|")


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("csv", help="from `minidirac bench gemm --csv`")
    with compare.refusals(parser.prog):
        name = parser.parse_args().csv
        rows = [row for row in read_rows(name)[0] if row.get("gflops_kernel")]
        with compare.reading(name, "a table of bench gemm"):
            (one_shape if len(set(map(shape_of, rows))) == 1 else many_shapes)(rows)


if __name__ == "__main__":
    main()
