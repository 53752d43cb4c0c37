#!/usr/bin/env python3
"""model_scaling.py REPORT... [-o PICTURE] [--network GB/s] [--network-latency US] [--node N]: what
many GPUs will need.

REPORT: JSON reports of `bench dirac` and `bench solver`, of one rank and of several on the same kind
of GPU, of which rows of action naive are read, of solves those of plain CG; where two measured the
same, the later one counts.
The model, whose times are fitted to them for each backend, precision and number of right-hand sides:

  interior  = start + sites * time per site
  boundary  = start + sites * time per site
  exchange  = latency + bytes / bandwidth of the link
  join      = start + bytes * what the messages take from the memory of the interior
  hop       = max(interior, exchange) + boundary + join
  iteration = 2 hops + sites * time of the vectors per site + sums

Prints the fit, its error at every measured point, and predictions for two lattices on 4 to 1024
GPUs, N to a node [8] with a network of GB/s a GPU [50] and a latency of US [10] between nodes.
"""

import argparse
import itertools
import math

import compare

LATTICES = ((64, 64, 64, 128), (144, 144, 144, 288))
GPUS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)


def line(points):
    """(a, b) of y = a + b x with a, b >= 0, by least squares of the relative error; 0 of no points."""
    points = [(x, y) for x, y in points if y > 0.0]
    s = [sum(x**k / y**2 for x, y in points) for k in range(3)]
    t = [sum(x**k / y for x, y in points) for k in range(2)]
    if s[2] == 0.0:
        return (t[0] / s[0] if points else 0.0), 0.0
    det = s[0] * s[2] - s[1] ** 2
    a = (t[0] * s[2] - t[1] * s[1]) / det if len(points) > 1 and det > 1e-12 * s[0] * s[2] else 0.0
    if a <= 0.0:
        return 0.0, t[1] / s[2]
    b = (t[1] - a * s[1]) / s[2]
    return (a, b) if b > 0.0 else (t[0] / s[0], 0.0)


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0.0


def key_of(row):
    return tuple(row[k] for k in ("backend", "packing", "precision", "reconstruct", "rhs"))


def sites_of(dims, grid):
    """Output sites of a rank, and those of them beside another rank; one hop wide."""
    local = [d // g for d, g in zip(dims, grid)]
    inner = math.prod(n - 2 * (g > 1) for n, g in zip(local, grid))
    return math.prod(local) / 2, (math.prod(local) - inner) / 2


def faces_of(dims, grid):
    """Sites of one parity that a rank sends: a corner counts in each face that has it."""
    local = [d // g for d, g in zip(dims, grid)]
    return sum(math.prod(local) / n for n, g in zip(local, grid) if g > 1)


def check(path, row, times):
    """Refuses a row whose extents, halo or times are those of no run."""
    if len(row["dims"]) != 4 or len(row["grid"]) != 4 or any(not n >= 2 * g > 0 for n, g in zip(row["dims"], row["grid"])):
        dims, grid = compare.shown(row["dims"]), compare.shown(row["grid"])
        raise compare.BadInput(f"{path} must have 4 extents of 2 sites a rank or more, got {dims} on {grid} ranks; measure anew")
    split = ["halo_bytes", "exchange_seconds", "interior_seconds", "boundary_seconds"] if "exchange_seconds" in row else []
    for key in ["rhs", *times, *split]:
        if not (compare.number(row[key]) or 0.0) > 0.0:
            raise compare.BadInput(f"{key} of {path} must be above 0, got {compare.shown(row[key])}; measure anew")
    if split and math.prod(row["grid"]) == 1:
        raise compare.BadInput(f"{path} has exchange_seconds and must be of several ranks, got one; measure anew")


def read(paths):
    """Rows of hops and of solves; of two that measured the same, the one that is read later."""
    hops, solves = {}, {}
    for path in paths:
        report = compare.load(path)
        with compare.reading(path, "a report of bench dirac or bench solver"):
            for row in report["rows"]:
                if row.get("action", report.get("action", "naive")) != "naive":
                    continue  # of other depth, flops and shape
                if row.get("solver", "cg") != "cg" or row.get("precondition", "none") != "none":
                    continue  # an iteration of other vectors and sums
                row["grid"] = report["grid"]
                same = (key_of(row), row.get("inner"), tuple(row["dims"]), tuple(row["grid"]))
                solved = report["command"] == "bench solver"
                check(path, row, ["ms_per_iteration_loop" if solved else "seconds_median"])
                (solves if solved else hops)[same] = row
    return list(hops.values()), list(solves.values())


class Model:
    """Of one kind of hop; times in seconds."""

    def __init__(self, rows, link):
        self.link, self.bytes_per_site = link, 0.0
        interior, boundary = [], []
        for row in rows:
            sites, edge = sites_of(row["dims"], row["grid"])
            if "exchange_seconds" not in row:
                interior.append((sites, row["seconds_median"]))
                continue
            interior.append((sites - edge, row["interior_seconds"]))
            boundary.append((edge, row["boundary_seconds"]))
            self.bytes_per_site = row["halo_bytes"] / faces_of(row["dims"], row["grid"])
        self.interior, self.boundary, self.join = line(interior), line(boundary), (0.0, 0.0)
        split = [r for r in rows if "exchange_seconds" in r]
        rest = [(r["halo_bytes"], r["seconds_median"] - self.hop_of(r)) for r in split]
        rest = [point for point in rest if point[1] > 0.0]
        self.join = line(rest) if rest else (0.0, 0.0)

    def hop(self, dims, grid, exchange):
        sites, edge = sites_of(dims, grid)
        inner = self.interior[0] + (sites - edge) * self.interior[1]
        if edge == 0:
            return inner
        join = self.join[0] + faces_of(dims, grid) * self.bytes_per_site * self.join[1]
        return max(inner, exchange) + self.boundary[0] + edge * self.boundary[1] + join

    def hop_of(self, row):
        sent = faces_of(row["dims"], row["grid"]) * self.bytes_per_site
        return self.hop(row["dims"], row["grid"], self.link[0] + sent * self.link[1])


def splittings(dims, count):
    """Ways to cut dims into count blocks of even extents."""
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    for grid in itertools.product(divisors, repeat=4):
        if math.prod(grid) == count and all(n % (2 * g) == 0 for n, g in zip(dims, grid)):
            yield grid


def predict(model, dims, count, options):
    """Shortest hop over all cuts into GPUs and of the GPUs into nodes: (seconds, grid)."""
    best = (math.inf, None)
    for grid in splittings(dims, count):
        local = [n // g for n, g in zip(dims, grid)]
        in_node = min(count, options.node)
        for node in itertools.product(*[[d for d in range(1, g + 1) if g % d == 0] for g in grid]):
            if math.prod(node) != in_node:
                continue
            near = far = 0.0
            for n, g, inside in zip(local, grid, node):
                face = math.prod(local) / n / 2 * model.bytes_per_site if g > 1 else 0.0
                outside = 0 if inside == g else 1 if inside > 1 else 2
                near, far = near + (2 - outside) * face, far + outside * face
            exchange = model.link[0] + near * model.link[1]
            if far > 0.0:
                over = 1e-6 * options.network_latency + far / (1e9 * options.network)
                exchange = max(exchange, model.link[0] + over)
            best = min(best, (model.hop(dims, grid, exchange), grid))
    return best


def fit_solves(models, solves):
    """(model key, time of vectors per site, time of sums) by the solve's key."""
    fits = {}
    for row in solves:
        precision = row["precision"] if row["inner"] == "none" else row["inner"]
        key = (row["backend"], row["packing"], precision, row["reconstruct"], row["rhs"])
        if key not in models:
            continue
        sites, edge = sites_of(row["dims"], row["grid"])
        rest = 1e-3 * row["ms_per_iteration_loop"] - 2 * models[key].hop_of(row)
        fits.setdefault((key, row["inner"]), []).append((sites, rest, edge > 0))
    result = {}
    for (key, inner), points in fits.items():
        alone = [rest / sites for sites, rest, split in points if not split]
        if not alone:
            print(f"left out: CG {' '.join(map(str, key))}, inner {inner}, of which no report of one rank tells the time of its vectors")
            continue
        vectors = median(alone)
        sums = median([rest - sites * vectors for sites, rest, split in points if split])
        result[key, inner] = (max(vectors, 0.0), max(sums, 0.0))
    return result


def print_fit(models, hops):
    print("| hop | start, us | ns per site | boundary, ns per site | join, us + us per MB |\n|---|---|---|---|---|")
    for key, m in models.items():
        print(f"| {' '.join(map(str, key))} | {1e6 * m.interior[0]:.1f} | {1e9 * m.interior[1]:.4f} "
              f"| {1e9 * m.boundary[1]:.4f} | {1e6 * m.join[0]:.1f} + {1e12 * m.join[1]:.2f} |")
    link = next(iter(models.values())).link
    rate = f"{1e-9 / link[1]:.0f} GB/s" if link[1] > 0.0 else "no more for more bytes"
    print(f"\nlink: {1e6 * link[0]:.1f} us and {rate} in an exchange\n")
    print("| measured | ranks | hop, us | model, us | ratio |\n|---|---|---|---|---|")
    for row in hops:
        name = " ".join(map(str, key_of(row))) + " " + "x".join(map(str, row["dims"]))
        got, want = models[key_of(row)].hop_of(row), row["seconds_median"]
        print(f"| {name} | {row['ranks']} | {1e6 * want:.1f} | {1e6 * got:.1f} | {got / want:.2f} |")


def print_predictions(models, solves, options):
    for dims in LATTICES:
        print(f"\n{' x '.join(map(str, dims))}: us per hop, and ms per iteration and right-hand side\n")
        print("| | " + " | ".join(map(str, GPUS)) + " |\n|---|" + "---|" * len(GPUS))
        for key, model in models.items():
            best = [predict(model, dims, n, options) for n in GPUS]
            cells = [f"{1e6 * t:.0f}" if grid else "-" for t, grid in best]
            print(f"| hop {' '.join(map(str, key))} | " + " | ".join(cells) + " |")
            for (of, inner), (vectors, sums) in solves.items():
                if of != key:
                    continue
                cells = []
                for count, (hop, grid) in zip(GPUS, best):
                    nodes = max(1, count // options.node)
                    far = 2e-6 * options.network_latency * math.ceil(math.log2(nodes)) if nodes > 1 else 0.0
                    time_s = 2 * hop + math.prod(dims) / 2 / count * vectors + sums + far
                    cells.append(f"{1e3 * time_s / key[4]:.4f}" if grid else "-")
                what = "CG" if inner == "none" else f"CG double/{inner}"
                print(f"| {what} {' '.join(map(str, key))} | " + " | ".join(cells) + " |")


def draw(models, hops, options):
    from plotting import COLOURS, PRECISIONS, caption, few_ticks, pyplot, save

    plot = pyplot()
    figure, axes = plot.subplots(1, 2, figsize=(10, 4.9), sharey=True)
    dashes, rates = ("-", "--", ":", "-.", (0, (1, 3))), []
    for axis, dims in zip(axes, ((48, 48, 48, 64), LATTICES[0])):
        for key, model in models.items():
            counts = [1, 2] + [n for n in GPUS if n <= 256]
            points = []
            for n in counts:
                hop, grid = predict(model, dims, n, options)
                if grid and hop > 0.0:
                    points.append((n, math.prod(dims) / 2 * 570e-12 * key[4] / hop / n))
            name = key[0] if key[1] in ("none", "", None) else f"{key[0]} {key[1]}"
            (curve,) = axis.plot(
                *zip(*points), label=f"{name}, {key[2]}, {key[4]} rhs", color=COLOURS.get(name, "#000000"),
                linestyle=dashes[PRECISIONS.index(key[2])], linewidth=1 if key[4] == 1 else 2.2)
            rates += [rate for _, rate in points]
            seen = [r for r in hops if key_of(r) == key and tuple(r["dims"]) == dims]
            axis.plot([r["ranks"] for r in seen], [1e-3 * r["gflops"] / r["ranks"] for r in seen], "o", color=curve.get_color())
        axis.set(xscale="log", yscale="log", xlabel="GPUs", title=" x ".join(map(str, dims)))
        axis.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    few_ticks(axes[0].yaxis, [tick for e in range(-3, 5) for tick in (10.0**e, 3 * 10.0**e) if min(rates) < tick < max(rates)])
    axes[0].set_ylabel("TFLOP/s per GPU in the hop")
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper center", ncols=3, fontsize=8, frameon=False)
    caption(figure, compare.load(options.reports[0]), "curves are the model, points were measured")
    figure.tight_layout(rect=(0, 0, 1, 0.86))
    save(figure, options.output, 120)


def positive(text, kind=float):
    value = kind(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text}")
    return value


def whole(text):
    return positive(text, int)


def microseconds(text):
    return compare.percent(text)


def main():
    parser = compare.Parser(__doc__)
    parser.add_argument("reports", nargs="+", metavar="REPORT")
    parser.add_argument("-o", "--output", metavar="PICTURE")
    parser.add_argument("--network", type=positive, default=50.0, metavar="GB/s")
    parser.add_argument("--network-latency", type=microseconds, default=10.0, metavar="US")
    parser.add_argument("--node", type=whole, default=8, metavar="N")
    with compare.refusals(parser.prog):
        show(parser.parse_args())


def show(options):
    hops, solve_rows = read(options.reports)
    exchanges = [(r["halo_bytes"], r["exchange_seconds"]) for r in hops if "exchange_seconds" in r]
    if not exchanges:
        raise compare.BadInput("the model needs a report of bench dirac with several ranks")
    link = line(exchanges)
    kinds = {}
    for row in hops:
        kinds.setdefault(key_of(row), []).append(row)
    models = {k: Model(rows, link) for k, rows in kinds.items()}
    models = {k: m for k, m in models.items() if m.bytes_per_site > 0.0}
    hops = [r for r in hops if key_of(r) in models]
    print_fit(models, hops)
    print_predictions(models, fit_solves(models, solve_rows), options)
    if options.output:
        draw(models, hops, options)


if __name__ == "__main__":
    main()
