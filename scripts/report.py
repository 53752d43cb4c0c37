#!/usr/bin/env python3
"""report.py REPORT... -o FILE.html: one page of JSON reports, with pictures, that needs nothing else.

Any number of reports stand side by side. The page holds verdicts, machines, every row of the reports, and pictures with
their numbers beside them: figures of merit, a roofline with every kernel and its ceilings, errors against speed and
bounds, correlators and effective masses, residuals, eigenvalues, times of solves, products of matrices. It follows the
reader's choice of light or dark. Standard library only.
"""

import html
import math
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
from compare import BadInput, Parser, broken_down, failed, load, number, refusals, shown  # noqa: E402 (scripts beside this one)
from pictures import bars, curves, operator_of, positive, scatter  # noqa: E402
from plot_correlator import effective_mass  # noqa: E402
from plotting import PALETTE, device_of, machine_of  # noqa: E402

PAPERS = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1e22;--soft:#5a6068;--axis:#858b92;--rule:#d5d8dc;--good:#00603f;--bad:#b00020;LIGHT}
@media(prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e6e8ea;--soft:#a9b0b8;--axis:#7d848c;--rule:#343a40;--good:#5fd3a2;--bad:#ff8a93;DARK}}
"""
STYLE = """
body{font:16px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:74rem;margin:0 auto;padding:0 1rem 2rem}
h1{font-size:1.5rem} h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--rule);overflow-wrap:anywhere} h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{max-width:50rem;font-size:.9rem} code{font-size:.75rem;color:var(--soft)}
.wide{overflow:auto} figure .wide,.checks{max-height:21rem} .all .wide{max-height:40rem} table{border-collapse:collapse;font-size:.8rem} th{font-weight:600}
th.n{white-space:normal} figure th,.all th,.checks th{position:sticky;top:0;background:var(--paper)} .reports,.bars{width:100%} .facts td{overflow-wrap:anywhere;min-width:8rem}
th,td{border-bottom:1px solid var(--rule);padding:.2rem .5rem .2rem 0;text-align:left;vertical-align:top;font-variant-numeric:tabular-nums}
.n{text-align:right;white-space:nowrap;padding-left:.5rem} .reports th{width:8rem} .reports th,code{overflow-wrap:anywhere} .soft{color:var(--soft);font-weight:400} .head td,.head th,.bars tr:not(.bar) td{border:0}
.side{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(21rem,100%),1fr));gap:1.2rem} .draw{max-width:31rem}
figure{min-width:0;margin:0;display:grid;grid-template-columns:repeat(auto-fit,minmax(min(21rem,100%),1fr));gap:.4rem 1.2rem;align-content:start}
figure>*{min-width:0} figure.list{display:block} figcaption,.legend{font-size:.85rem;overflow-wrap:anywhere} svg{width:100%;height:auto;font:12px system-ui,sans-serif;display:block}
details{margin-top:1rem} summary{cursor:pointer;font-weight:600;overflow-wrap:anywhere} .PASS{color:var(--good)} .FAIL{color:var(--bad)}
.legend{list-style:none;padding:0;margin:.3rem 0;display:flex;flex-wrap:wrap;gap:.1rem 1rem} .key{display:inline-block;width:.9rem;margin-right:.3rem;vertical-align:-.15rem}
text{fill:var(--ink)} .axis{fill:none;stroke:var(--axis)} .grid{stroke:var(--rule);stroke-width:.7} .roof{fill:none;stroke:var(--ink);stroke-dasharray:5 4}
.number{font-size:11px;stroke:var(--paper);stroke-width:3px;paint-order:stroke} .dashed{stroke-dasharray:4 3} .line{fill:none;stroke-width:1.4;stroke:currentColor}
path,rect{fill:currentColor} .hollow{fill:var(--paper);stroke:currentColor;stroke-width:1.6} .bar td{padding:0 0 .3rem} .bar svg{height:.75rem}
.spread{fill:none;stroke:var(--ink);stroke-width:1.5;vector-effect:non-scaling-stroke} tr{color:inherit}
"""


def style():
    """With the colours of all pictures for both papers."""
    papers = ("".join(f"--s{i}:{pair[dark]};" for i, pair in enumerate(PALETTE.values())) for dark in (0, 1))
    marks = "".join(f".s{i}{{color:var(--s{i})}}" for i in range(len(PALETTE)))
    return PAPERS.replace("LIGHT", next(papers)).replace("DARK", next(papers)) + STYLE + marks


def text(value):
    """Anything of a report as text of the page."""
    if isinstance(value, float):
        value = f"{value:.5g}"
    elif isinstance(value, dict):
        value = ", ".join(f"{key} {shown(item)}" for key, item in value.items() if item is not None)
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value) and value:
        value = "; ".join(", ".join(f"{key} {shown(item[key])}" for key in item) for item in value)
    return html.escape("" if value is None else shown(value))


def product_holds(row):
    """Whether every element is within its bound, by the norms where a row does not tell; None: it was not checked."""
    if "excess" in row:
        return None if row.get("checked") == "off" else not failed(row)
    error, bound = number(row.get("relative_error")), number(row.get("relative_bound"))
    return None if error is None or bound is None else error <= bound


def verdict(report):
    """PASS, FAIL or nothing, and why."""
    rows = [row for row in report.get("rows") or [] if isinstance(row, dict)]
    if report.get("interrupted"):
        return "FAIL", "ended early by a signal"
    if report["command"] == "bench suite":
        merit, whole = number(report.get("figure_of_merit")), report.get("class")
        words = f"class {shown(whole)}" + (f", {merit:.4g} right-hand sides to 1e-10 per second" if merit else "")
        words += ", official" if report.get("official") is True else ""
        return ("PASS" if report.get("pass") is True else "FAIL"), words
    if "pass" in report:
        return ("PASS" if report["pass"] is True else "FAIL"), "as the report says"
    if "broken_bounds" in report:
        return ("PASS" if report["broken_bounds"] == 0 else "FAIL"), f"{shown(report['broken_bounds'])} broken bounds"
    if report["command"] in ("solve", "bench solver"):
        lines = rows if report["command"] == "bench solver" else [report]
        broken = sum(broken_down(report).values())
        missed = broken + sum(line.get("converged") is not True for line in lines)
        return ("FAIL" if missed or not lines else "PASS"), f"{missed} of {len(lines) + broken} solves missed the tolerance"
    if report["command"] == "bench gemm":
        checked = [good for good in map(product_holds, rows) if good is not None]
        broken = checked.count(False)
        word = "FAIL" if broken else "PASS" if checked and len(checked) == len(rows) else ""
        return word, f"{broken} of {len(checked)} checked products beyond their bound, {len(rows)} in all"
    if report["command"] == "eigen":
        return ("PASS" if report.get("converged") is True else "FAIL"), f"{shown(report.get('converged_modes'))} modes converged"
    if report["command"] == "measure":
        return "", f"{shown(report.get('measured'))} lattices measured"
    if report.get("checksum") == "mismatch":
        return "FAIL", "the checksum does not match"
    return "", "this command gives no verdict"


def caption(name, report):
    date = shown(machine_of(report).get("date_utc") or "")[:16].replace("T", " ")
    return ", ".join(text(part) for part in (name, device_of(report), date and date + " UTC") if part)


def rows_of(report, command, parts):
    """The rows that a report of this command has, and those of such parts of a suite."""
    if report["command"] == "bench suite":
        return [row for row in report["rows"] if row.get("part") in parts]
    return report["rows"] if report["command"] == command else []


def having(reports, command, parts, keys=()):
    """(caption, rows) of the reports that have some."""
    found = [(caption(name, report), report, rows_of(report, command, parts)) for name, report in reports]
    found = [(words, report, [row for row in rows if all(key in row for key in keys)]) for words, report, rows in found]
    return [(words, report, rows) for words, report, rows in found if rows]


HOST_KERNELS = ("naive", "cpu_tiled", "openblas", "scalapack")  # of products; all others run on a GPU


def on_gpu(row):
    """Whether a stencil, product or copy ran on a GPU."""
    if "space" in row:
        return row["space"] != "host"
    if "m" in row:
        kernels = [shown(row.get(key) or "").split(":")[0] for key in ("local_kernel", "kernel")]
        return not any(kernel in HOST_KERNELS for kernel in kernels)
    return row.get("backend") in ("cuda", "tensor")


def same_machine(a, b):
    facts = [[shown(machine.get(key)) for key in ("host", "cpu", "gpu", "cores")]
             for machine in (report.get("machine") for report in (a, b)) if isinstance(machine, dict)]
    return len(facts) == 2 and facts[0] == facts[1]


def roof_of(report, rows, gpu):
    """The bandwidth of the largest working set: beside a row, of a suite's copies, or else of the report."""
    copies = [number(row.get("gbytes_per_s")) for row in report["rows"] if row.get("part") == "copy" and on_gpu(row) == gpu]
    beside = [number(row.get("bandwidth_gbytes_per_s")) for row in rows]
    roof = max((value for value in copies + beside if value), default=number(report.get("copy_gbytes_per_s")))
    return (roof, f"{roof:.4g} GB/s") if roof else None


def ceilings_of(report, reports, gpu):
    """The fastest product of matrices of each precision: (GFLOP/s, words), of this report, or else of all others of its
    machine."""
    best = {}
    for sources in ([report], [other for _, other in reports if same_machine(report, other)]):
        for source in sources if not best else []:
            for row in rows_of(source, "bench gemm", ("gemm",)):
                speed, precision = positive(row, "gflops_kernel"), shown(row.get("precision"))
                if speed and on_gpu(row) == gpu:
                    best[precision] = max(speed[0], best.get(precision, 0))
    return [(speed, f"{precision} GEMM {float(f'{speed:.3g}'):.7g}") for precision, speed in best.items()]


def roofline(reports):
    """Stencils and, where their shapes are told, products of matrices; those of hosts and of GPUs apart."""

    def point(row):
        if "kernel" in row and "m" in row:
            size = {"double": 8, "single": 4, "tf32": 4}.get(shown(row.get("precision")), 2)
            at = positive(row, "m", "n", "k", "gflops_kernel")
            if not at:
                return None
            m, n, k, speed = at
            return 2 * m * n * k / (size * (m * k + k * n) + max(size, 4) * m * n), speed
        at = positive(row, "gflops", "gbytes_per_s")
        return at and (at[0] / at[1], at[0])

    out = []
    for gpu in (False, True):
        found = []
        for name, report in reports:
            rows = rows_of(report, "bench dirac", ("hop",)) + rows_of(report, "bench gemm", ("gemm",))
            rows = [row for row in rows if ("gflops" in row or "gflops_kernel" in row) and on_gpu(row) == gpu]
            if rows:
                found.append((caption(name, report), rows, (roof_of(report, rows, gpu), ceilings_of(report, reports, gpu))))
        if found:
            title = "Roofline of " + ("GPUs" if gpu else "hosts")
            out.append(f"<h3>{'GPUs' if gpu else 'Hosts'}</h3>" + scatter(
                [(words, rows) for words, rows, _ in found], point,
                lambda row: "GEMM " + shown(row["kernel"]) if "m" in row else operator_of(row), title,
                ("operations per byte", "GFLOP/s"), [roof for *_, roof in found], lambda row: "m" in row))
    return out and (
        "<h2>Roofline</h2><p>A point is a kernel with one set of options, named in the table by its number. Operations per "
        "byte count the bytes that cannot be avoided. Dashed: the memory bandwidth measured in the same run, which a kernel "
        "exceeds that works in a cache or reads more than it writes, and the fastest product of matrices of each precision in "
        "that report, or in another one here of that machine: the ceiling of arithmetic in practice, not on paper.</p>"
    ) + "".join(out) or ""


def errors(reports):
    found = having(reports, "bench dirac", ("hop",), ("backend", "error"))
    if not found:
        return ""
    return (
        "<h2>Speed against error</h2><p>Of the stencil; the error is relative to the double-precision reference.</p>"
        + scatter([(words, rows) for words, _, rows in found], lambda row: positive(row, "error", "gflops"),
                  operator_of, "Speed against error", ("relative error", "GFLOP/s"))
    )


def scaling(reports):
    """Where the reports together have stencils on several numbers of ranks."""
    found = having(reports, "bench dirac", ("hop",), ("backend", "ranks"))
    if len({shown(row["ranks"]) for _, _, rows in found for row in rows}) < 2:
        return ""
    together = [("all reports together", [row for _, _, rows in found for row in rows])]
    return "<h2>Stencil over ranks</h2>" + scatter(
        together, lambda row: positive(row, "ranks", "gflops"), operator_of, "Stencil over ranks", ("ranks", "GFLOP/s of all"))


def bounds(reports):
    """Errors that validate found, against what rounding explains."""
    found = [(f"{text(operation)}; {words}", [row for row in rows if shown(row.get("operation")) == operation])
             for words, _, rows in having(reports, "validate", (), ("rel_l2_error", "bound"))
             for operation in dict.fromkeys(shown(row.get("operation")) for row in rows)]
    title, roofs = "Errors against their bounds", [((1, "error = bound"), [])] * len(found)
    return found and (
        f"<h2>{title}</h2><p>Of operators in a precision, against double; below the dashed line the error is within its "
        "a-priori bound.</p>" + scatter(found, lambda row: positive(row, "bound", "rel_l2_error"), operator_of, title,
                                        ("a-priori bound", "relative error"), roofs)) or ""


def of_command(reports, command):
    return [(caption(name, report), report) for name, report in reports if report["command"] == command]


def reals(report, key):
    """A list of numbers, those that are none as None; else an empty one."""
    values = report.get(key)
    return [number(value) for value in values] if isinstance(values, list) else []


def dicts(report, key):
    """The rows of a list of a report."""
    values = report.get(key)
    return [row for row in values if isinstance(row, dict)] if isinstance(values, list) else []


def source_slice(report):
    """The time slice of a solve's source, from which its correlator is shown."""
    slices = r"(?:point:\d+,\d+,\d+,|(?:wall|corner|evenwall|oddwall|colour):)(\d+)(?:,\d+)?"
    found = re.fullmatch(slices, shown(report.get("source")))
    return int(found[1]) if found and report.get("pion_correlator_from") != "source" else 0


def pions(reports):
    """Correlators and effective masses: of solves on one lattice together, of a study in a picture of its own."""
    groups = {}
    for words, report in of_command(reports, "solve"):
        c = [value or 0.0 for value in reals(report, "pion_correlator")]
        start = source_slice(report)
        if c and start < len(c):
            c = c[start:] + c[:start]
            lattice = shown(report.get("lattice")).rsplit("/", 1)[-1]
            name = f"{shown(report.get('action', ''))} mass {shown(report.get('mass'))} {shown(report.get('source', ''))}"
            masses = [number(mass) for mass in effective_mass(c)]
            groups.setdefault(f"{text(lattice)}, one lattice: no errors", []).append((name, c, [], masses, []))
    for words, report in of_command(reports, "measure"):
        words += f"; {len(dicts(report, 'lattices'))} lattices, errors by jackknife"
        for row in dicts(report, "pion"):
            momentum = [n for n in reals(row, "momentum") if n is not None]
            name = f"mass {shown(row.get('mass'))}"
            name += ", p = " + ",".join(f"{n:g}" for n in momentum) if any(momentum) else ""
            lists = (reals(row, key) for key in ("correlator", "error", "effective_mass", "effective_mass_error"))
            group = f"{text(row.get('action'))}, {text(row.get('source'))}; {words}"
            groups.setdefault(group, []).append((name, *lists))
    if not groups:
        return ""
    points = lambda y, error: [(t, v, error[t] if t < len(error) else None) for t, v in enumerate(y)]
    correlators = [(words, [(name, points(c, e)) for name, c, e, _, _ in series]) for words, series in groups.items()]
    masses = [(words, [(name, points(m, e)) for name, _, _, m, e in series]) for words, series in groups.items()]
    return (
        "<h2>Pion correlators</h2><p>t is counted from the source, in lattice units. Points of several series at one t stand "
        "beside each other.</p>" + curves(correlators, "Pion correlators", ("t", "C(t)"))
        + "<h2>Effective masses of the pion</h2><p>arcosh[(C(t-1) + C(t+1)) / (2 C(t))], in lattice units, left out where "
        "there is none: flat where the pion alone is left.</p>"
        + curves(masses, "Effective masses", ("t", "effective mass"), (False, False)))


def histories(reports):
    """What iterations, modes and sweeps did; of long ones every so manieth alone."""
    out = ""

    def line(row, key, name, first=0):
        y = reals(row, key)
        apart = math.ceil(len(y) / 300)
        return name, [(i + first, v, None) for i, v in enumerate(y) if i % apart == 0 or i == len(y) - 1]

    lines = [(words, [report]) for words, report in of_command(reports, "solve")]
    lines += [(words, dicts(report, "solver")) for words, report in of_command(reports, "validate")]
    residuals = [(words, [line(row, "residual_history", solve_name(row)) for row in rows]) for words, rows in lines]
    modes = [(words, [line(report, "eigenvalues", "eigenvalue")]) for words, report in of_command(reports, "eigen")]
    sweeps = [(words, [line(report, "plaquette_history", "plaquette", 1)]) for words, report in of_command(reports, "generate")]
    for title, found, labels, log in (("Residuals", residuals, ("iteration", "relative residual"), True),
                                      ("Eigenvalues of -Deo Doe", modes, ("mode", "eigenvalue"), True),
                                      ("Plaquette over sweeps", sweeps, ("sweep", "plaquette"), False)):
        drawn = curves(found, title, labels, (False, log))
        out += f"<h2>{title}</h2>{drawn}" if drawn else ""
    return out


def merits(reports):
    """Figures of merit, by class, action and mass, to which a figure belongs."""
    kinds = {}
    for name, report in reports:
        merit = positive(report, "figure_of_merit") if report["command"] == "bench suite" else None
        if merit:
            kind = f"class {shown(report.get('class'))}, {shown(report.get('action'))}, mass {shown(report.get('mass'))}"
            why = "official" if report.get("official") is True else "not official"
            words = f"{html.unescape(caption(name, report))}; {shown(report.get('figure_of_merit_of', ''))}; {why}"
            ends = positive(report, "figure_of_merit_min", "figure_of_merit_max") or []
            kinds.setdefault(kind, []).append((words, merit[0], ends, True))
    return kinds and (
        "<h2>Figure of merit</h2><p>Right-hand sides solved to a true residual of 1e-10 per second, by the fastest solve that "
        "passed its checks; the line on a bar runs from the longest to the shortest repetition.</p>"
        + "".join(bars([(text(kind), rows)], "/s") for kind, rows in kinds.items())) or ""


def solve_name(row):
    """Short enough for a phone."""
    words = [shown(row.get("solver", "")), operator_of(row), shown(row.get("precision", ""))]
    words = [word for word in words if word]
    words += [f"inner {shown(row['inner'])}"] if row.get("inner") not in (None, "none") else []
    words += [f"{shown(row['reconstruct'])} reals"] if row.get("reconstruct") not in (None, "18") else []
    words += [f"{shown(row['rhs'])} rhs"] if row.get("rhs") else []
    return " ".join(words) + (f", mass {shown(row['mass'])}" if row.get("mass") is not None else "")


def solver_bars(reports):
    """Seconds per right-hand side, with a line from the shortest to the longest repetition."""
    found = []
    for name, report in reports:
        lines = [report] if report["command"] == "solve" else rows_of(report, "bench solver", ("cg1", "cg16"))
        bar = []
        for row in lines:
            rhs = (positive(row, "rhs") or [1])[0]
            time = positive(row, "seconds_per_rhs") or [t / rhs for t in positive(row, "solver_seconds") or []]
            ends = [t / rhs for t in positive(row, "seconds_min", "seconds_max") or []]
            bar.append((solve_name(row), time[0] if time else None, ends, row.get("converged") is True))
        if bar:
            found.append((caption(name, report), bar))
    if not found:
        return ""
    missed = any(not good for _, bar in found for *_, good in bar)
    note = "<p>The other colour: the tolerance was missed.</p>" if missed else ""
    return "<h2>Solver times per right-hand side</h2>" + bars(found, "s") + note


def gemm_bars(reports):
    """GFLOP/s of the largest shape of each precision, on hosts and on GPUs."""
    out = ""
    for gpu in (False, True):
        found = []
        for words, _, rows in having(reports, "bench gemm", ("gemm",), ("kernel", "m", "n", "k")):
            rows = [row for row in rows if on_gpu(row) == gpu]
            work = lambda row: math.prod(positive(row, "m", "n", "k") or [0])
            precision = lambda row: shown(row.get("precision"))
            largest = {kind: max(work(row) for row in rows if precision(row) == kind) for kind in map(precision, rows)}
            bar = []
            for row in rows:
                speed = positive(row, "gflops_kernel")
                if speed and work(row) == largest[precision(row)]:
                    share = number(row.get("vs_reference"))
                    beside = f", {share:.2f} of its library" if share else ""
                    size = "x".join(shown(row[key]) for key in ("m", "n", "k"))
                    bar.append((f"{shown(row['kernel'])} {precision(row)} {size}{beside}", speed[0], [], True))
            if bar:
                found.append((words, bar))
        out += f"<h3>{'GPUs' if gpu else 'Hosts'}</h3>" + bars(found, "GFLOP/s") if found else ""
    return "<h2>Products of matrices</h2>" + out if out else ""


def digits(value, tolerance):
    """To one digit more than the tolerance has, or three digits where that is less; all that a double has at most."""
    value, tolerance = number(value), number(tolerance)
    if value is None or not tolerance or tolerance <= 0 or abs(value) < 10 * tolerance:
        return "" if value is None else f"{value:.3g}"
    places = math.ceil(-math.log10(tolerance)) + 1
    most = 16 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(0, min(places, most))}f}"


def checks(reports):
    """What a suite checked."""
    out = []
    for name, report in reports:
        rows = report.get("checks") if report["command"] == "bench suite" else None
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            lines = ""
            for row in rows:
                word, tolerance = "PASS" if row.get("pass") is True else "FAIL", row.get("tolerance")
                off = number(row.get("value")), number(row.get("expected"))
                off = f"{abs(off[0] - off[1]):.2g}" if None not in off else ""
                cells = (digits(row.get("value"), tolerance), digits(row.get("expected"), tolerance), off,
                         f"{number(tolerance):.2g}" if number(tolerance) is not None else text(tolerance))
                lines += (f"<tr><td><b class='{word}'>{word}</b></td><td>{text(row.get('name'))}</td>"
                          + "".join(f"<td class='n'>{cell}</td>" for cell in cells) + "</tr>")
            out.append(f"<h2>Checks of {text(name)}</h2><div class='wide checks' tabindex='0'><table><tr><th></th><th>what</th>"
                       "<th class='n'>value</th><th class='n'>expected</th><th class='n'>off by</th><th class='n'>within</th></tr>"
                       f"{lines}</table></div>")
    return "".join(out)


def table(rows):
    keys = list(dict.fromkeys(key for row in rows for key in row if not isinstance(row[key], list) or len(row[key]) <= 8))
    out = ["<div class='wide' tabindex='0'><table><tr>" + "".join(f"<th>{text(key)}</th>" for key in keys) + "</tr>"]
    for row in rows:
        cells = ((row.get(key), " class='n'" if number(row.get(key)) is not None else "") for key in keys)
        out.append("<tr class='row'>" + "".join(f"<td{kind}>{text(value)}</td>" for value, kind in cells) + "</tr>")
    return "".join(out) + "</table></div>"


def facts_of(report):
    """What is the machine's, not the run's."""
    gib = lambda key, value: f"{number(value) / 2**30:.4g} GiB" if key == "memory_bytes" and number(value) else text(value)
    facts = {key: gib(key, value) for key, value in machine_of(report).items() if key not in ("date_utc", "command_line", "commit")}
    return {key.replace("memory_bytes", "memory"): value for key, value in facts.items() if value}


def overview(reports):
    """A line a report, and the machines, a column each."""
    kinds, lines = [], []
    for name, report in reports:
        word, why = verdict(report)
        why = f"<b class='{word}'>{word}</b> {text(why)}" if word else text(why)
        machine, facts = machine_of(report), facts_of(report)
        if facts and facts not in kinds:
            kinds.append(facts)
        on = f"machine {kinds.index(facts) + 1}" if facts else ""
        commit, words = report.get("commit") or machine.get("commit"), text(machine.get("command_line"))
        run = ", ".join(text(part) for part in (on, machine.get("date_utc"), commit) if part)
        title = f"{text(name)}<br/><span class='soft'>{text(report['command'])}</span>"
        lines.append(f"<tr class='head'><th scope='row'>{title}</th><td>{why}</td></tr>"
                     f"<tr><td colspan='2'><code>{run}{': ' if words else ''}{words}</code></td></tr>")
    out = f"<h2>Reports and verdicts</h2><table class='reports'>{''.join(lines)}</table>"
    keys = list(dict.fromkeys(key for facts in kinds for key in facts))
    rows = []
    for key in keys:
        cells = [facts.get(key, "") for facts in kinds]
        same = len(set(cells)) == 1 and len(cells) > 1
        data = f"<td colspan='{len(cells)}'>{cells[0]}</td>" if same else "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f"<tr><th scope='row'>{html.escape(shown(key)).replace('_', ' ')}</th>{data}</tr>")
    heads = "".join(f"<th>{i}</th>" for i in range(1, len(kinds) + 1))
    return out + ("<h2>Machines</h2><div class='wide' tabindex='0'><table class='facts'>"
                  f"<tr><th></th>{heads}</tr>{''.join(rows)}</table></div>" if kinds else "")


def page(reports):
    out = [
        "<!DOCTYPE html>\n<html xmlns='http://www.w3.org/1999/xhtml' lang='en'><head><meta charset='utf-8'/>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'/>"
        f"<title>miniDirac reports</title><style>{style()}</style></head><body><h1>miniDirac reports</h1>",
        overview(reports),
    ]
    parts = (merits, roofline, errors, bounds, scaling, solver_bars, gemm_bars, pions, histories, checks)
    out += [part(reports) for part in parts]
    for name, report in reports:
        if report["rows"]:
            title = f"All {len(report['rows'])} rows of {text(name)} ({text(report['command'])})"
            out.append(f"<details class='all'><summary>{title}</summary>{table(report['rows'])}</details>")
    return "".join(out) + "</body></html>\n"


def write(name, contents):
    """Under a temporary name and renamed: a failure leaves an older page as it was."""
    try:
        descriptor, partial = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(name)), suffix=".partial")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(contents)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(partial, 0o666 & ~mask)
            os.replace(partial, name)
        except OSError:
            os.unlink(partial)
            raise
    except OSError as error:
        raise BadInput(f"{name} cannot be written: {error.strerror}") from error


def main():
    parser = Parser(__doc__, "report.py")
    parser.add_argument("reports", metavar="REPORT", nargs="+", help="what --json wrote")
    parser.add_argument("-o", "--output", metavar="FILE.html", required=True, help="the page; one that is there is replaced")
    with refusals(parser.prog):
        arguments = parser.parse_args()
        if os.path.realpath(arguments.output) in map(os.path.realpath, arguments.reports):
            raise BadInput(f"{arguments.output} is one of the reports; give the page another name")
        reports = [(name, load(name)) for name in arguments.reports]
        for name, report in reports:
            rows = report.setdefault("rows", [])
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise BadInput(f"{name} has no list of rows; give a report that miniDirac wrote")
        write(arguments.output, page(reports))


if __name__ == "__main__":
    main()
