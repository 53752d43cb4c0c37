#!/usr/bin/env python3
"""GFLOP/s against right-hand sides, with the roofline of compulsory bytes.

One panel a precision; a line a backend and packing; the roofline is 570 flops a site and right-hand side over the
compulsory bytes, times the largest bandwidth that the run measured.
"""
import argparse
import csv
import sys

from plotting import pyplot


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", help="from `minidirac bench dirac --csv`, 18 reals a link")
    parser.add_argument("png", help="to write")
    arguments = parser.parse_args()
    plot = pyplot()
    with open(arguments.csv, newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["reconstruct"] == "18"]
    if not rows:
        sys.exit(f"{arguments.csv} has no rows of 18 reals a link")
    precisions = [p for p in ("double", "single", "half", "bf16", "fixed") if any(r["precision"] == p for r in rows)]
    figure, axes = plot.subplots(1, len(precisions), figsize=(4.2 * len(precisions), 3.8), squeeze=False)
    for axis, precision in zip(axes[0], precisions):
        mine = [r for r in rows if r["precision"] == precision]
        bandwidth = max(float(r["bandwidth_gbytes_per_s"]) for r in mine)
        roof = sorted({(int(r["rhs"]), 570.0 * int(r["rhs"]) * bandwidth / float(r["site_bytes"])) for r in mine})
        axis.plot(*zip(*roof), "k--", label=f"roofline, {bandwidth:.0f} GB/s")
        for name in sorted({(r["backend"], r["packing"]) for r in mine}):
            points = sorted((int(r["rhs"]), float(r["gflops"])) for r in mine if (r["backend"], r["packing"]) == name)
            axis.plot(*zip(*points), "o-", label=name[0] + ("" if name[1] == "none" else " " + name[1]))
        axis.set(title=precision, xlabel="right-hand sides", xscale="log", yscale="log")
        axis.set_xticks([r for r, _ in roof], [str(r) for r, _ in roof])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    axes[0][0].set_ylabel("GFLOP/s")
    figure.suptitle("Deo, " + rows[0]["dims"].replace("x", " x "))
    figure.tight_layout()
    figure.savefig(arguments.png, dpi=120)


if __name__ == "__main__":
    main()
