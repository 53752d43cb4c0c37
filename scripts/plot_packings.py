#!/usr/bin/env python3
"""Draws the tiles of docs/packings.md as SVG from the index maps themselves.

    build/tests/tensor/print_packing_maps | scripts/plot_packings.py docs/figures
"""
import json
import os
import sys

import compare

CELL, GAP, TOP = 15, 46, 34
COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#999933"]


def tile(entry_rows, x, title, label):
    """One grid: colour is the item, pale is the imaginary part, '-' a sign."""
    rows, columns = len(entry_rows), len(entry_rows[0])
    out = [f'<text x="{x}" y="{TOP - 12}" class="t">{title}</text>']
    for i, row in enumerate(entry_rows):
        for j, (item, r, c, part, sign) in enumerate(row):
            px, py = x + j * CELL, TOP + i * CELL
            fill = COLOURS[item] if sign else "#f4f4f4"
            out.append(f'<rect x="{px}" y="{py}" width="{CELL}" height="{CELL}" fill="{fill}" '
                       f'fill-opacity="{0.5 if part else 1}" class="c"/>')
            if sign:
                text = ("\u2212" if sign < 0 else "") + label(r, c)
                out.append(f'<text x="{px + CELL / 2}" y="{py + 11}" class="n">{text}</text>')
    return out, x + columns * CELL + GAP, TOP + rows * CELL


def write(path, grids):
    """grids: list of (rows, title, label)."""
    body, x, height = [], 10, 0
    for rows, title, label in grids:
        drawn, x, bottom = tile(rows, x, title, label)
        body += drawn
        height = max(height, bottom)
    style = (".c{stroke:#fff;stroke-width:1}.n{font:8px sans-serif;text-anchor:middle;fill:#111}"
             ".t{font:13px sans-serif;fill:#111}")
    with open(path, "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{x - GAP + 10}" '
                f'height="{height + 10}"><rect width="100%" height="100%" fill="#fff"/>'
                f"<style>{style}</style>" + "".join(body) + "</svg>\n")


def grid(tiles, name):
    t = tiles[name]
    entries, columns = t["entries"], t["columns"]
    return [entries[i * columns:(i + 1) * columns] for i in range(t["rows"])]


def main():
    parser = compare.Parser(__doc__, "plot_packings.py")
    parser.add_argument("folder", help="for the SVG files")
    with compare.refusals(parser.prog):
        folder = parser.parse_args().folder
        os.makedirs(folder, exist_ok=True)
        with compare.reading("standard input", "a list of tiles", "give what print_packing_maps wrote"):
            tiles = {t["name"]: t for t in json.load(sys.stdin)}
            both, one = (lambda r, c: f"{r}{c}"), (lambda r, c: f"{r}")
            for name in ("single", "diagonal", "block8"):
                write(f"{folder}/packing-{name}.svg",
                      [(grid(tiles, f"{name}-a"), "A: matrices", both),
                       (grid(tiles, f"{name}-b"), "B: vectors", one),
                       (grid(tiles, f"{name}-c"), "C: results", one)])
            turned = lambda name: [list(row) for row in zip(*grid(tiles, name))]
            write(f"{folder}/packing-stacked-16bit.svg",
                  [(turned("stacked-16bit"), "B (turned): k = 0 .. 47 to the right, 16 bits", both)])
            write(f"{folder}/packing-stacked-double.svg",
                  [(turned("stacked-double"), "B (turned): k = 0 .. 47 to the right, double", both)])
            write(f"{folder}/packing-spins.svg",
                  [(grid(tiles, "spins"), "A: rows g, g+8 of both accumulators, k = 0 .. 47 to the right; "
                    "digits: the spin and the one added to it", both)])


if __name__ == "__main__":
    main()
