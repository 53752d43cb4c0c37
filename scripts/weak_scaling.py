#!/usr/bin/env python3
"""weak_scaling.py PROGRAM --local AxBxCxD --ranks 1,2,4 [-- OPTIONS]: how a hop or a solve keeps its speed where every
rank keeps its lattice.

Runs `PROGRAM bench dirac OPTIONS` (with --kind solver `bench solver`) on each number of ranks, on lattices of as many
blocks of --local as ranks, cut into ranks along t, z, y and x in turn. For every row of the reports it prints the
seconds of a hop (of an iteration), the GFLOP/s of a rank, and the efficiency: seconds on the first number of ranks over
those here. --keep FOLDER keeps the reports, which scripts/model_scaling.py takes. Standard library only.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys
import tempfile

import compare


def grid_of(ranks):
    """Ranks along x, y, z, t: prime factors, the largest first, go where the fewest ranks are, of equals to the last."""
    grid, factor, primes = [1, 1, 1, 1], 2, []
    while ranks > 1:
        while ranks % factor == 0:
            primes.append(factor)
            ranks //= factor
        factor += 1
    for prime in reversed(primes):
        grid[max(range(4), key=lambda mu: (-grid[mu], mu))] *= prime
    return grid


def numbers(text, separator, least):
    words = text.split(separator)
    if not all(word.isdecimal() and int(word) >= least for word in words):
        raise argparse.ArgumentTypeError(f"must be numbers from {least} on, got {text}")
    return [int(word) for word in words]


def local(text):
    values = numbers(text, "x", 2)
    if len(values) != 4:
        raise argparse.ArgumentTypeError(f"must be AxBxCxD, got {text}")
    return values


def run(arguments, ranks, folder):
    """The report of one number of ranks."""
    grid = grid_of(ranks)
    dims = [side * blocks for side, blocks in zip(arguments.local, grid)]
    path = folder / f"weak-{ranks}.json"
    with compare.reading("--launcher", "words of a command line", "close its quotes"):
        command = shlex.split(arguments.launcher.replace("{}", str(ranks))) + [arguments.program, "bench", arguments.kind]
    command += ["--dims", "x".join(map(str, dims)), "--grid", "x".join(map(str, grid)), "--json", str(path), "--quiet"]
    if subprocess.run(command + arguments.options).returncode != 0:
        raise compare.BadInput(f"failed: {shlex.join(command + arguments.options)}")
    return compare.load(str(path))


def seconds_of(row):
    """Of a hop, of an iteration of a solve; None: not timed."""
    time = compare.timed(row)
    return time and time[0] / (compare.number(row.get("iterations")) or 1)


def table(reports):
    """Lines of the table, by what a row measured and then by ranks."""
    without = compare.PER_RUN + ["dims"]
    found = {ranks: compare.rows_of(report, f"the report of {ranks} ranks", without) for ranks, report in reports.items()}
    same, short = compare.names(list(dict.fromkeys(identity for rows in found.values() for identity in rows)))
    width = max(map(len, short.values()))
    yield f"{next(iter(reports.values()))['command']}: {same}"
    yield f"{'row':{width}}  {'ranks':>5}  {'lattice':>15}  {'seconds':>10}  {'GFLOP/s a rank':>14}  efficiency"
    for identity, name in short.items():
        first = None
        for ranks, rows in found.items():
            row = rows.get(identity)
            seconds = row and seconds_of(row)
            if not seconds:
                continue
            first = first or seconds
            gflops = (compare.number(row.get("gflops")) or 0) / ranks
            lattice = compare.shown(row["dims"])
            yield f"{name:{width}}  {ranks:5}  {lattice:>15}  {seconds:10.3e}  {gflops:14.2f}  {first / seconds:10.3f}"


def main():
    words, options = sys.argv[1:], []
    if "--" in words:
        words, options = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = compare.Parser(__doc__, "weak_scaling.py")
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("--local", type=local, required=True, metavar="AxBxCxD", help="lattice of a rank")
    parser.add_argument("--ranks", type=lambda text: numbers(text, ",", 1), required=True, metavar="N,M")
    parser.add_argument("--kind", choices=["dirac", "solver"], default="dirac", help="what is timed [dirac]")
    parser.add_argument("--launcher", default="mpirun -n {}", help="what starts {} ranks [mpirun -n {}]")
    parser.add_argument("--keep", metavar="FOLDER", help="where the reports stay")
    with compare.refusals("weak_scaling.py"):
        arguments = parser.parse_args(words)
        arguments.options = options
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(arguments.keep or scratch)
            folder.mkdir(parents=True, exist_ok=True)
            print(*table({ranks: run(arguments, ranks, folder) for ranks in arguments.ranks}), sep="\n")


if __name__ == "__main__":
    main()
