#!/usr/bin/env python3
"""Markdown table of GFLOP/s and roofline fractions.

usage: table_dirac.py CSV         CSV: from `minidirac bench dirac --csv`
"""
import csv
import sys


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    cell, lines, columns = {}, [], [p for p in ("double", "single", "half", "bf16", "fixed") if any(r["precision"] == p for r in rows)]
    for r in rows:
        key = (r["backend"], r["packing"], r["reconstruct"], int(r["rhs"]))
        if key not in lines:
            lines.append(key)
        cell[key, r["precision"]] = f'{float(r["gflops"]):.0f} ({float(r["roofline_fraction"]):.2f})'
    print("| backend | packing | link reals | rhs |", " | ".join(columns), "|")
    print("|---" * (4 + len(columns)) + "|")
    for key in sorted(lines, key=lambda k: (k[3], k[0], k[1], -int(k[2]))):
        print("|", " | ".join(str(k) for k in key), "|", " | ".join(cell.get((key, c), "-") for c in columns), "|")


if __name__ == "__main__":
    main()
