#!/usr/bin/env python3
"""plot_timeline.py TRACE -o PICTURE [--from US] [--length US] [--title TEXT]: what a GPU did when.

TRACE: of scripts/trace_device.c. Every stream is a row; the colours say what ran. --from counts
from the trace's start [two thirds of it], --length is the time shown [700].
"""

import os

import compare
from plotting import caption, pyplot, save

# Part of a kernel's name, what it is, its colour; the first that fits.
KINDS = (
    ("unpack", "halo into the field", "tab:purple"),
    ("pack", "surfaces to the other GPU", "tab:red"),
    ("other GPU", "surfaces to the other GPU", "tab:red"),
    ("copy", "halo into the field", "tab:purple"),
    ("flags", "flags", "black"),
    ("settle", "sums and scalars", "tab:orange"),
    ("cg_vectors", "vectors", "tab:green"),
    ("hop", "stencil", "tab:blue"),
    ("march", "stencil", "tab:blue"),
    ("gather", "stencil", "tab:blue"),
    ("", "other", "tab:gray"),
)


def read(path):
    work = []
    try:
        with open(path, encoding="utf-8") as file:
            compare.READ.add(os.path.realpath(path))
            for line in file:
                what, start, length, stream, size, name = line.rstrip("\n").split(" ", 5)
                work.append((float(start), float(length), int(stream), int(size), name))
    except (OSError, ValueError) as error:
        raise compare.BadInput(f"{path} must be a trace, got {error}; give one of scripts/trace_device.c") from error
    if not work:
        raise compare.BadInput(f"{path} holds no work; give a trace of scripts/trace_device.c")
    return sorted(work)


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("trace", metavar="TRACE")
    parser.add_argument("-o", "--output", required=True, metavar="PICTURE")
    parser.add_argument("--from", dest="start", type=float, metavar="US")
    parser.add_argument("--length", type=float, default=700.0, metavar="US")
    parser.add_argument("--title", default="")
    parser.add_argument("--caption", help="machine and date, which a trace does not say")
    options = parser.parse_args()
    work = read(options.trace)
    first = work[0][0]
    start = first + (2 * (work[-1][0] - first) / 3 if options.start is None else options.start)
    shown = [w for w in work if w[0] + w[1] > start and w[0] < start + options.length]
    streams = sorted({w[2] for w in shown})
    plot = pyplot()
    figure, axis = plot.subplots(figsize=(11, 1.9 + 0.7 * len(streams)), layout="tight")
    named = set()
    for at, length, stream, _, name in shown:
        _, kind, colour = next(k for k in KINDS if k[0] in name)
        label = kind if kind not in named else None
        named.add(kind)
        axis.barh(streams.index(stream), length, left=at - start, height=0.6, color=colour, label=label)
    axis.set_yticks(range(len(streams)), ["all work", "halo"][: len(streams)] if len(streams) <= 2 else streams)
    axis.set(xlabel="microseconds", xlim=(0, options.length))
    axis.invert_yaxis()
    axis.legend(ncols=len(named), fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.3))
    caption(figure, options.caption)
    axis.set_title(options.title, fontsize=10)
    save(figure, options.output, 100)


if __name__ == "__main__":
    with compare.refusals("plot_timeline.py"):
        main()
