#!/usr/bin/env python3
"""Writes PERFORMANCE.md: the newest figure of each kind and machine with its source.

It reads every report (JSON) below bench/ and the tables (CSV) that bench/tables.json describes:
machine, date, commit and command of each. Of two figures of the same thing the newer one stands;
what a figure is follows from its row alone. `performance.py --check` compares with the file.
`performance.py --add NAME REPORT JOB` makes results/NAME.json, one per machine, of a report of
`bench suite` and the job script that it was made by, with a hash of both.
"""
import csv
import glob
import hashlib
import json
import os
import sys

import compare
from table_gemm import shape_of

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SPINS = ("wilson", "domainwall", "mobius")
PRECISIONS = ("double", "single", "half", "bf16", "fixed")
INNERS = ("none", "single", "half", "bf16", "fixed")
MODE = {"": "", "single": "Deo alone", "turn": "Deo and Doe in turn"}


def dims_of(value):
    dims = value if isinstance(value, list) else [int(n) for n in str(value).split("x")]
    groups, text = [], []
    for n in dims:
        if groups and groups[-1][0] == n:
            groups[-1][1] += 1
        else:
            groups.append([n, 1])
    for n, count in groups:
        text.append(f"{n}^{count}" if count > 1 else str(n))
    return " x ".join(text)


def short(command):
    """The command as a reader would type it: without folders of one machine and without reports."""
    words, out = command.split(), []
    for i, word in enumerate(words):
        if word in ("--json", "--csv", "--quiet", "--scratch") or (i and words[i - 1] in ("--json", "--csv", "--scratch")):
            continue
        out.append(os.path.basename(word) if word.startswith("/") else word)
    return " ".join(out)


def machine_of(report):
    machine = report["machine"]
    gpus = machine.get("gpu")
    if not gpus or report.get("devices_are") == "cores":
        return machine["cpu"]
    names = [g["name"] for g in gpus]
    return f"{len(names)} {names[0]}" if len(names) > 1 else names[0]


class Source:
    """Where rows come from: machine, date, commit, command and path below bench/."""

    def __init__(self, path, machine, date, commit, command):
        self.path, self.machine, self.date, self.commit, self.command = path, machine, date, commit, command


def read_rows():
    """(kind, row, source) of all files, oldest first."""
    found = []
    for path in glob.glob(os.path.join(TOP, "bench", "**", "*.json"), recursive=True):
        if os.path.basename(path) == "tables.json":
            continue
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        if "rows" not in report or "machine" not in report:
            continue
        machine = report["machine"]
        source = Source(os.path.relpath(path, TOP), machine_of(report), machine["date_utc"],
                        report["commit"].split("-")[0][:7], short(machine.get("command_line", "")))
        if report["command"] == "bench suite":
            found.append(("suite", report, source))
            continue
        for row in report["rows"]:
            found.append((report["command"].replace("bench ", ""), {**{"action": report.get("action", "naive"), "threads": report.get("threads", "")}, **row}, source))
    with open(os.path.join(TOP, "bench", "tables.json"), encoding="utf-8") as file:
        tables = json.load(file)
    for path, about in tables.items():
        source = Source("bench/" + path, about["machine"], about["date"], about["commit"], about["command"])
        with open(os.path.join(TOP, "bench", path), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                found.append((about["kind"], {**{"action": "naive"}, **row}, source))
    return sorted(found, key=lambda f: f[2].date)


def hash_of(result):
    text = json.dumps(result["report"], sort_keys=True) + result["job"]
    return hashlib.sha256(text.encode()).hexdigest()


def add(name, report, job):
    with open(job, encoding="utf-8") as script, compare.reading(job, "a text", "give the job script"):
        result = {"report": compare.document(report), "job": script.read()}
    for key in ("figure_of_merit", "devices"):
        if not (compare.number(result["report"].get(key)) or 0) > 0:
            raise compare.BadInput(f"{report} has no {key}; give a report of a whole `bench suite` of this version")
    if result["report"].get("pass") is not True:
        raise compare.BadInput(f"{report} must pass its checks, got pass {result['report'].get('pass')}; give a report of a run that passes")
    with compare.reading(report, "a report of bench suite"):
        result["report"]["machine"]["command_line"] = short(result["report"]["machine"]["command_line"])
        result["sha256"] = hash_of(result)
        line_of(result, name)
    if os.path.basename(name) != name:
        raise compare.BadInput(f"the result must have a name without a folder, got '{name}'; leave the folder out")
    with open(os.path.join(TOP, "results", name + ".json"), "w", encoding="utf-8") as file:
        json.dump(result, file)
        file.write("\n")


def line_of(result, name):
    """The figure per device and the words of a row of the table."""
    r = result["report"]
    devices = f'{r["devices"]} {r["devices_are"]}' if r["devices"] > 1 else "1 " + r["devices_are"].rstrip("s")
    return (r["sites_rhs_per_second_per_device"],
            [f"[{machine_of(r)}](results/{name}.json)", devices, r["class"], r["action"], f'{r["figure_of_merit"]:.2f}',
             f'{r["sites_rhs_per_second"]:.3g}', f'{r["figure_gflops"]:.4g}', "yes" if r["official"] else r["not_official"],
             f'{r["commit"][:7]} of {r["machine"]["date_utc"][:10]}', f'`{result["sha256"][:8]}`'])


def results_table():
    """The machines of results/, largest figure per device first."""
    rows = []
    for path in glob.glob(os.path.join(TOP, "results", "*.json")):
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        if hash_of(result) != result["sha256"]:
            sys.exit(f"{path} must have the sha256 of its report and job; make it anew with --add")
        rows.append(line_of(result, os.path.basename(path)[:-len(".json")]))
    heads = ["machine", "devices", "class", "action", "figure of merit", "sites x right-hand sides/s", "GFLOP/s", "official", "code", "sha256"]
    return ["| " + " | ".join(words) + " |" for words in
            [heads, ["---"] * len(heads)] + [words for _, words in sorted(rows, key=lambda row: -row[0])]]


def of_kind(rows, kind, machine):
    return [(r, s) for k, r, s in rows if k == kind and s.machine == machine]


class Table:
    """Lines by a key, columns by a word; the newest cell of each stands."""

    def __init__(self, title, heads, columns):
        self.title, self.heads, self.columns = title, heads, columns
        self.cells, self.sources = {}, {}

    def put(self, line, column, text, source):
        if column in self.columns:
            self.cells[line, column] = text
            self.sources[line, column] = source

    def write(self, out, order=None):
        lines = sorted({line for line, _ in self.cells}, key=order)
        if not lines:
            return
        columns = [c for c in self.columns if any((line, c) in self.cells for line in lines)]
        out.append(f"### {self.title}\n")
        out.append("| " + " | ".join(list(self.heads) + columns) + " |")
        out.append("|---" * (len(self.heads) + len(columns)) + "|")
        for line in lines:
            words = [str(w) for w in line] + [self.cells.get((line, c), "-") for c in columns]
            out.append("| " + " | ".join(words) + " |")
        out.append("")
        newest = {}
        for source in self.sources.values():
            folder = os.path.dirname(source.path)
            newest.setdefault((folder, source.commit, source.date[:10]), source)
        by_folder = {}
        for folder, commit, date in sorted(newest):
            by_folder.setdefault(folder, []).append(f"{commit} of {date}")
        out.append("From " + "; ".join(f"`{folder}` ({', '.join(what)})" for folder, what in by_folder.items()) + "; the newest by\n")
        last = max(self.sources.values(), key=lambda s: s.date)
        out.append(f"    {last.command}\n")


def backend_of(row):
    return row["backend"] if row["packing"] == "none" else f'{row["backend"]}:{row["packing"]}'


def gflops(row):
    value, share = float(row["gflops"]), float(row.get("roofline_fraction") or 0)
    digits = 0 if value >= 100 else 1
    return f"{value:.{digits}f}" + (f" ({share:.2f})" if share else "")


def hop_tables(rows, machine):
    """On a GPU one table by link reals and right-hand sides at the largest lattice, one by lattice; one of quarks with spin."""
    rows = of_kind(rows, "dirac", machine)
    spins = Table("Hops of quarks with four spins, GFLOP/s and share of the roofline",
                  ("action", "slices", "lattice", "backend", "link reals", "right-hand sides"), PRECISIONS)
    for r, s in rows:
        if r["action"] in SPINS:
            spins.put((r["action"], int(r.get("Ls") or 1), dims_of(r["dims"]), backend_of(r), r["reconstruct"], int(r["rhs"])),
                      r["precision"], gflops(r), s)
    rows = [(r, s) for r, s in rows if r["action"] not in SPINS]
    largest = "48^3 x 64" if any(dims_of(r["dims"]) == "48^3 x 64" for r, _ in rows) else None
    heads = ("action", "backend", "link reals", "right-hand sides")
    if largest:
        by_kind = Table(f"Hops at {largest}, GFLOP/s and share of the roofline", heads, PRECISIONS)
        by_lattice = Table("Hops of the packing stacked with 16 right-hand sides", ("action", "lattice"), PRECISIONS)
        for r, s in rows:
            many = int(r["rhs"]) > 1
            if dims_of(r["dims"]) == largest and not (many and (int(r["reconstruct"]) < 18 or int(r["rhs"]) < 8)):
                by_kind.put((r["action"], backend_of(r), r["reconstruct"], int(r["rhs"])), r["precision"], gflops(r), s)
            if r["packing"] == "stacked" and int(r["rhs"]) == 16:
                by_lattice.put((r["action"], dims_of(r["dims"])), r["precision"], gflops(r), s)
        return [by_kind, by_lattice, spins]
    table = Table("Hops, GFLOP/s and share of the triad", ("action", "lattice", "threads", "hops", "link reals", "right-hand sides"), PRECISIONS)
    for r, s in rows:
        line = (r["action"], dims_of(r["dims"]), r.get("threads", ""), MODE[r.get("mode", "")], r["reconstruct"], int(r["rhs"]))
        table.put(line, r["precision"], gflops(r), s)
    return [table, spins]


def solver_tables(rows, machine):
    cg = Table("Conjugate gradients, milliseconds per iteration and right-hand side",
               ("action", "lattice", "backend", "link reals", "right-hand sides"), [f"double/{i}" if i != "none" else "double" for i in INNERS])
    time = Table("Time to solution, seconds per right-hand side (iterations)",
                 ("action", "lattice", "mass", "way", "backend", "right-hand sides"), cg.columns)
    for r, s in of_kind(rows, "solver", machine):
        if r["precision"] != "double" or str(r["converged"]).lower() != "true":
            continue
        column = "double" if r["inner"] == "none" else f'double/{r["inner"]}'
        lattice = dims_of(r["dims"])
        mass = float(r["mass"])
        if mass == 0.05 and r["solver"] == "cg" and lattice in ("16^4", "16^3 x 32", "32^3 x 64", "40^4"):
            cg.put((r["action"], lattice, backend_of(r), r["reconstruct"], int(r["rhs"])), column, f'{float(r["ms_per_iteration_rhs"]):.4g}', s)
        elif mass < 0.05 and r["solver"] in ("cg", "block", "deflated", "multishift", "separate"):
            way = r["solver"] + (f', {r["modes"]} modes' if r.get("modes") else "")
            time.put((r["action"], lattice, mass, way, backend_of(r), int(r["rhs"])), column,
                     f'{float(r["seconds_per_rhs"]):.4f} ({r["iterations"]})', s)
    return [cg, time]


def gemm_tables(rows, machine):
    rows = of_kind(rows, "gemm", machine)
    shapes = [shape_of(r) for r, _ in rows]
    wanted = [s for s in ("1000^3", "4096^3", "8192^3", "8192 x 8192 x 32", "8192 x 8192 x 64", "8192 x 8192 x 128", "8192 x 8192 x 156") if s in shapes]
    if not wanted:
        wanted = list(dict.fromkeys(shapes))
    table = Table("Dense products, TFLOP/s and share of the vendor's or system's library", ("precision", "kernel"), wanted)
    for r, s in rows:
        share = f' ({float(r["vs_reference"]):.2f})' if r.get("vs_reference") else ""
        rate = f'{float(r["gflops_kernel"]) / 1e3:.3g}' if r.get("gflops_kernel") else ""
        table.put((r["precision"], r["kernel"].split(":128x128")[0]), shape_of(r), (rate + share).strip(), s)
    return [table]


def suite_table(rows, machine):
    table = Table("Suite, right-hand sides to 1e-10 per second", ("class", "action"), ["figure of merit", "of"])
    for r, s in of_kind(rows, "suite", machine):
        merit, of = r.get("figure_of_merit"), r.get("figure_of_merit_of")
        solves = [row for row in r["rows"] if row.get("converged")]
        if not merit and solves:  # some parts alone, which give no figure
            best = min(solves, key=lambda row: row["seconds_per_rhs"])
            merit = 1 / best["seconds_per_rhs"]
            of = f'{backend_of(best)}, inner {best["inner"]}, {best["rhs"]} right-hand sides at once; this part alone, no figure of merit'
        if merit:
            table.put((r["class"], r["action"]), "figure of merit", f"{merit:.2f}", s)
            table.put((r["class"], r["action"]), "of", of, s)
    return [table]


def other_tables(rows, machine):
    table = Table("Other codes on this machine", ("code", "what", "lattice", "right-hand sides"), ["double", "single", "half", "double/half"])
    for r, s in of_kind(rows, "other", machine):
        table.put((r["code"], r["what"], r["lattice"], int(r["rhs"])), r["precision"], r["figure"], s)
    return [table]


def page():
    rows = read_rows()
    out = ["# Measured", "",
           "This page is generated by `scripts/performance.py` from the raw records in [bench/](bench): for each machine the newest figure",
           "of its kind. [bench/tried.md](bench/tried.md) says what binds the kernels and what was tried and did not help.", "",
           "A *hop* is Deo, from odd to even sites: 570 operations per output site and right-hand side, 1146 with fat and long links. The",
           "*roofline* is the compulsory bytes over the bandwidth of a copy in the same run; on a CPU the share is that of a triad with the",
           "same threads and working set. A share above 1 occurs because a hop reads eleven times what it writes. Figures on a",
           "GPU are absolute; on shared CPUs the shares within a run count.", ""]
    out += ["## Machines by the suite", "",
            "One file of [results/](results) each, with the whole report and the job script that it was made by; `scripts/performance.py --add`",
            "makes one more.", ""] + results_table() + [""]
    machines = list(dict.fromkeys(s.machine for _, _, s in rows))
    for machine in sorted(machines, key=lambda m: ("GPU" not in m and "NVIDIA" not in m, m)):
        body = []
        for make in (hop_tables, solver_tables, suite_table, gemm_tables, other_tables):
            for table in make(rows, machine):
                table.write(body)
        if body:
            out += [f"## {machine}", ""] + body
    return "\n".join(out).rstrip() + "\n"


def main():
    parser = compare.Parser(__doc__, "performance.py")
    parser.add_argument("--check", action="store_true", help="exit 1 where PERFORMANCE.md is not what would be written")
    parser.add_argument("--add", nargs=3, metavar=("NAME", "REPORT", "JOB"), help="make results/NAME.json, and the page")
    with compare.refusals(parser.prog):
        arguments = parser.parse_args()
        if arguments.add:
            add(*arguments.add)
    path, text = os.path.join(TOP, "PERFORMANCE.md"), page()
    if arguments.check:
        with open(path, encoding="utf-8") as file:
            sys.exit(0 if file.read() == text else "PERFORMANCE.md is not what the records say; run scripts/performance.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
