#!/usr/bin/env python3
"""Shares of OpenBLAS and speed-ups over ranks: host kernels and products over ranks, as ratios within one run.

usage: ratios_gemm.py MINIDIRAC [--ranks 2,4] [--mpirun "mpirun --oversubscribe"]

One thread a rank. Ratios are of the best repetition of both sides, which stand in one run of the
program beside each other, twice; a busy neighbour can still hit one of them. Takes about three minutes.
"""
import json
import shlex
import subprocess
import tempfile

import compare

SHAPES = "256x256x256,512x512x512,641x639x1023,1000x1000x1000,1024x1024x64"
OVER_RANKS = "1000x1000x1000,1500x700x2000"


def rows_of(command):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        run = subprocess.run(command + ["--json", report.name, "--quiet"], capture_output=True, text=True)
        if run.returncode != 0:
            raise compare.BadInput(f"{shlex.join(command)} failed: {run.stderr.strip()}")
        return json.load(open(report.name))["rows"]


def best(rows, **wanted):
    times = [r["seconds_min"] for r in rows if all(r[key] == value for key, value in wanted.items())]
    return min(times) if times else None


def shape_of(row):
    return row["m"], row["n"], row["k"]


def ratio(above, below):
    return f"{above / below:.2f}" if above and below else "-"


def one_rank(minidirac):
    bench = [minidirac, "bench", "gemm", "--threads", "1", "--baseline", "off", "--check", "off"]
    rows = rows_of(bench + ["--kernels", "openblas,cpu_tiled,openblas,cpu_tiled", "--repeat", "20",
                            "--precision", "single,double", "--shapes", SHAPES])
    naive = rows_of(bench + ["--kernels", "openblas,naive", "--repeat", "2",
                             "--precision", "single,double", "--shapes", "512x512x512"])
    print("| m x n x k | cpu_tiled, single | cpu_tiled, double |\n|---|---|---|")
    for m, n, k in dict.fromkeys(map(shape_of, rows)):
        cells = [ratio(best(rows, kernel="openblas", precision=p, m=m, n=n, k=k),
                       best(rows, kernel="cpu_tiled", precision=p, m=m, n=n, k=k)) for p in ("single", "double")]
        print(f"| {m} x {n} x {k} |", " | ".join(cells), "|")
    cells = [f'{best(naive, kernel="openblas", precision=p) / best(naive, kernel="naive", precision=p):.3f}'
             for p in ("single", "double")]
    print("| naive, 512 x 512 x 512 |", " | ".join(cells), "|\n")


def over_ranks(minidirac, ranks, mpirun):
    known = subprocess.run([minidirac, "bench", "gemm", "--kernels", "scalapack", "--shapes", "4x4x4", "--quiet"],
                           capture_output=True, text=True).returncode == 0
    methods = ["block_cyclic", "summa"] + (["scalapack"] if known else [])
    print("| ranks | m x n x k | method | speed-up over one rank | scatter, gather over product "
          "| pdgemm over product |\n" + "|---" * 6 + "|")
    for count in ranks:
        command = mpirun + ["-n", str(count), minidirac, "bench", "gemm", "--kernels", ",".join(["cpu_tiled"] + methods * 2),
                            "--threads", "1", "--baseline", "off", "--check", "off", "--repeat", "7",
                            "--precision", "double", "--shapes", OVER_RANKS]
        rows = rows_of(command)
        for m, n, k in dict.fromkeys(map(shape_of, rows)):
            of = {"m": m, "n": n, "k": k}
            one, library = best(rows, kernel="cpu_tiled", **of), best(rows, kernel="scalapack", **of)
            for method in methods:
                line = next(r for r in rows if r["kernel"] == method and shape_of(r) == (m, n, k))
                moved = "-"
                if line["seconds_scatter"] > 0:
                    moved = ", ".join(f'{line[key] / line["seconds_product"]:.2f}'
                                      for key in ("seconds_scatter", "seconds_gather"))
                product = best(rows, kernel=method, **of)
                print(f"| {count} | {m} x {n} x {k} | {method} | {ratio(one, product)} | {moved} | {ratio(library, product)} |")


def main():
    parser = compare.Parser(__doc__, "ratios_gemm.py")
    parser.add_argument("minidirac")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--mpirun", default="mpirun --oversubscribe")
    with compare.refusals(parser.prog):
        options = parser.parse_args()
        with compare.reading("--ranks or --mpirun", "numbers A,B, or words of a command line", "see --help"):
            ranks, mpirun = [int(n) for n in options.ranks.split(",")], shlex.split(options.mpirun)
            if min(ranks) < 1:
                raise ValueError("ranks must be at least 1")
        one_rank(options.minidirac)
        over_ranks(options.minidirac, ranks, mpirun)


if __name__ == "__main__":
    main()
