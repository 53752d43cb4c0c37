#!/usr/bin/env python3
"""Markdown table of GFLOP/s and roofline fractions.
"""

import compare


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("csv", help="from `minidirac bench dirac --csv`")
    with compare.refusals(parser.prog):
        words, numbers = ("backend", "packing", "precision"), ("reconstruct", "rhs", "gflops")
        name = parser.parse_args().csv
        rows = compare.table(name, words, numbers, "bench dirac")
        with compare.reading(name, "a table of bench dirac"):
            write(rows)


def write(rows):
    cell, lines, columns = {}, [], [p for p in ("double", "single", "half", "bf16", "fixed") if any(r["precision"] == p for r in rows)]
    for r in rows:
        key = (r["backend"], r["packing"], r["reconstruct"], int(r["rhs"]))
        if key not in lines:
            lines.append(key)
        fraction = f' ({float(r["roofline_fraction"]):.2f})' if r.get("roofline_fraction") else ""
        cell[key, r["precision"]] = f'{float(r["gflops"]):.0f}{fraction}'
    print("| backend | packing | link reals | rhs |", " | ".join(columns), "|")
    print("|---" * (4 + len(columns)) + "|")
    for key in sorted(lines, key=lambda k: (k[3], k[0], k[1], -int(k[2]))):
        print("|", " | ".join(str(k) for k in key), "|", " | ".join(cell.get((key, c), "-") for c in columns), "|")


if __name__ == "__main__":
    main()
