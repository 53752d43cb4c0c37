#!/usr/bin/env python3
"""report.py REPORT... -o FILE.html: one page of JSON reports, with pictures, that needs nothing else.

Several reports stand side by side on the same axes. The page holds the machines, a verdict, every
row of the reports, and pictures: a roofline with every kernel, speed against error, over ranks where
there are several, times of solves, products of matrices. Standard library only.
"""

import argparse
import html
import math
import os
import sys
import tempfile

sys.dont_write_bytecode = True
from compare import BadInput, load, number, shown  # noqa: E402 (scripts beside this one)
from pictures import bars, operator_of, positive, scatter  # noqa: E402

STYLE = """
body{font:16px/1.45 system-ui,sans-serif;color:#222;background:#fff;max-width:70rem;margin:0 auto;padding:0 1rem}
h1{font-size:1.5rem} h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid #ccc}
.wide{overflow-x:auto} table{border-collapse:collapse;font-size:.8rem} .machines td{overflow-wrap:anywhere;min-width:8rem}
th,td{border-bottom:1px solid #ddd;padding:.2rem .5rem;text-align:left;vertical-align:top} .n{text-align:right}
.side{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(20rem,100%),1fr));gap:1rem} figure{min-width:0;margin:0}
figcaption,.legend{font-size:.85rem;overflow-wrap:anywhere} svg{width:100%;height:auto;font:14px system-ui,sans-serif}
details{margin-top:1rem} summary{cursor:pointer;font-weight:600}
.legend span{margin-right:1rem;white-space:nowrap} .PASS{color:#00603f} .FAIL{color:#b00020} b.PASS,b.FAIL{font-weight:bold}
"""


def text(value):
    """Anything of a report as text of the page."""
    if isinstance(value, float):
        value = f"{value:.5g}"
    elif isinstance(value, dict):
        value = ", ".join(f"{key} {shown(item)}" for key, item in value.items() if item is not None)
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value) and value:
        value = "; ".join(", ".join(f"{key} {shown(item[key])}" for key in item) for item in value)
    return html.escape("" if value is None else shown(value))


def verdict(report):
    """PASS, FAIL or nothing, and why."""
    rows = [row for row in report.get("rows") or [] if isinstance(row, dict)]
    if report.get("interrupted"):
        return "FAIL", "ended early by a signal"
    if report["command"] == "bench suite":
        merit, whole = number(report.get("figure_of_merit")), report.get("class")
        words = f"class {shown(whole)}" + (f", {merit:.4g} right-hand sides to 1e-10 per second" if merit else "")
        return ("PASS" if report.get("pass") is True else "FAIL"), words
    if "pass" in report:
        return ("PASS" if report["pass"] is True else "FAIL"), "as the report says"
    if "broken_bounds" in report:
        return ("PASS" if report["broken_bounds"] == 0 else "FAIL"), f"{shown(report['broken_bounds'])} broken bounds"
    if report["command"] in ("solve", "bench solver"):
        lines = rows if report["command"] == "bench solver" else [report]
        missed = sum(line.get("converged") is not True for line in lines)
        return ("FAIL" if missed or not lines else "PASS"), f"{missed} of {len(lines)} solves missed the tolerance"
    if report["command"] == "bench gemm":
        pairs = [(number(row.get("relative_error")), number(row.get("relative_bound"))) for row in rows]
        checked = [(error, bound) for error, bound in pairs if error is not None and bound is not None]
        broken = sum(error > bound for error, bound in checked)
        word = "FAIL" if broken else "PASS" if checked and len(checked) == len(rows) else ""
        return word, f"{broken} of {len(checked)} checked products beyond their bound, {len(rows)} in all"
    if report.get("checksum") == "mismatch":
        return "FAIL", "the checksum does not match"
    return "", "this command gives no verdict"


def caption(name, report):
    machine = report.get("machine") if isinstance(report.get("machine"), dict) else {}
    gpus = machine.get("gpu") if isinstance(machine.get("gpu"), list) else []
    device = next((gpu["name"] for gpu in gpus if isinstance(gpu, dict) and gpu.get("name")), machine.get("cpu"))
    return ", ".join(text(part) for part in (name, device, machine.get("date_utc")) if part)


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


def roof_of(report, rows):
    """The bandwidth of the largest working set: of the report, of a suite's copies, or the largest beside a row."""
    given = number(report.get("copy_gbytes_per_s"))
    copies = [number(row.get("gbytes_per_s")) for row in report["rows"] if row.get("part") == "copy"]
    beside = [number(row.get("bandwidth_gbytes_per_s")) for row in rows]
    return given or max((value for value in copies + beside if value), default=None)


def roofline(reports):
    """Stencils and, where their shapes are told, products of matrices."""

    def point(row):
        if "kernel" in row and "m" in row:
            size = {"double": 8, "single": 4, "tf32": 4}.get(row.get("precision"), 2)
            at = positive(row, "m", "n", "k", "gflops_kernel")
            if not at:
                return None
            m, n, k, speed = at
            return 2 * m * n * k / (size * (m * k + k * n) + max(size, 4) * m * n), speed
        at = positive(row, "gflops", "gbytes_per_s")
        return at and (at[0] / at[1], at[0])

    found = [(words, report, rows_of(report, "bench dirac", ("hop",)) + rows_of(report, "bench gemm", ("gemm",)))
             for words, report in ((caption(name, report), report) for name, report in reports)]
    found = [(words, report, [row for row in rows if "gflops" in row or "gflops_kernel" in row]) for words, report, rows in found]
    found = [(words, report, rows) for words, report, rows in found if rows]
    if not found:
        return ""
    kinds = lambda row: "GEMM " + shown(row["kernel"]) if "m" in row else operator_of(row)
    return (
        "<h2>Roofline</h2><p>A point is a kernel with one set of options; point at it for its name. Operations per byte "
        "count the bytes that cannot be avoided. The dashed line is the memory bandwidth measured in the same run: a kernel "
        "above it works in a cache, or reads more than it writes.</p>"
        + scatter([(words, rows) for words, _, rows in found], point, kinds, ("operations per byte", "GFLOP/s"),
                  [roof_of(report, rows) for _, report, rows in found])
    )


def errors(reports):
    found = having(reports, "bench dirac", ("hop",), ("backend", "error"))
    if not found:
        return ""
    return (
        "<h2>Speed against error</h2><p>Of the stencil; the error is relative to the double-precision reference.</p>"
        + scatter([(words, rows) for words, _, rows in found], lambda row: positive(row, "error", "gflops"),
                  lambda row: shown(row.get("precision")), ("relative error", "GFLOP/s"))
    )


def scaling(reports):
    """Where the reports together have stencils on several numbers of ranks."""
    found = having(reports, "bench dirac", ("hop",), ("backend", "ranks"))
    if len({shown(row["ranks"]) for _, _, rows in found for row in rows}) < 2:
        return ""
    together = [("all reports together", [row for _, _, rows in found for row in rows])]
    return "<h2>Stencil over ranks</h2>" + scatter(
        together, lambda row: positive(row, "ranks", "gflops"), operator_of, ("ranks", "GFLOP/s of all"))


def solve_name(row):
    """Short enough for a phone."""
    words = [shown(row.get("solver", "")), operator_of(row)]
    words += [f"inner {shown(row['inner'])}"] if row.get("inner") not in (None, "none") else []
    words += [f"{shown(row['reconstruct'])} reals"] if row.get("reconstruct") not in (None, "18") else []
    return " ".join(words + [f"{shown(row.get('rhs', ''))} rhs, mass {shown(row.get('mass', ''))}"])


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
    note = "<p class='legend'>The other colour: the tolerance was missed.</p>" if missed else ""
    return "<h2>Solver times per right-hand side</h2>" + bars(found, "s") + note


def gemm_bars(reports):
    """GFLOP/s of the largest shape of each precision."""
    found = []
    for words, _, rows in having(reports, "bench gemm", ("gemm",), ("kernel", "m", "n", "k")):
        largest = {}
        for row in rows:
            work = math.prod(positive(row, "m", "n", "k") or [0])
            largest[row.get("precision")] = max(work, largest.get(row.get("precision"), 0))
        bar = []
        for row in rows:
            speed = positive(row, "gflops_kernel")
            if speed and math.prod(positive(row, "m", "n", "k") or [0]) == largest[row.get("precision")]:
                share = number(row.get("vs_reference"))
                beside = f", {share:.2f} of its library" if share else ""
                size = "x".join(shown(row[key]) for key in ("m", "n", "k"))
                bar.append((f"{shown(row['kernel'])} {shown(row.get('precision'))} {size}{beside}", speed[0], [], True))
        if bar:
            found.append((words, bar))
    return "<h2>Products of matrices</h2>" + bars(found, "GFLOP/s") if found else ""


def checks(reports):
    """What a suite checked."""
    out = []
    for name, report in reports:
        rows = report.get("checks") if report["command"] == "bench suite" else None
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            lines = "".join(
                f"<tr><td><b class='{'PASS' if row.get('pass') is True else 'FAIL'}'>"
                f"{'PASS' if row.get('pass') is True else 'FAIL'}</b></td><td>{text(row.get('name'))}</td>"
                f"<td class='n'>{text(row.get('value'))}</td><td class='n'>{text(row.get('expected'))}</td>"
                f"<td class='n'>{text(row.get('tolerance'))}</td></tr>" for row in rows)
            out.append(f"<h2>Checks of {text(name)}</h2><div class='wide'><table><tr><th></th><th>what</th><th>value</th>"
                       f"<th>expected</th><th>within</th></tr>{lines}</table></div>")
    return "".join(out)


def table(rows):
    keys = list(
        dict.fromkeys(key for row in rows for key in row if not isinstance(row[key], list) or len(row[key]) <= 8)
    )
    out = ["<div class='wide'><table><tr>" + "".join(f"<th>{text(key)}</th>" for key in keys) + "</tr>"]
    for row in rows:
        cells = ((row.get(key), " class='n'" if number(row.get(key)) is not None else "") for key in keys)
        out.append("<tr class='row'>" + "".join(f"<td{kind}>{text(value)}</td>" for value, kind in cells) + "</tr>")
    return "".join(out) + "</table></div>"


def machines(reports):
    """A column a report."""
    columns = []
    for name, report in reports:
        word, why = verdict(report)
        column = {
            "report": text(name),
            "command": text(report["command"]),
            "verdict": f"<b class='{word}'>{word}</b> {text(why)}" if word else text(why),
        }
        machine = (
            report.get("machine") if isinstance(report.get("machine"), dict) else {"commit": report.get("commit")}
        )
        column.update((key, text(value)) for key, value in machine.items() if key not in column)
        columns.append(column)
    keys = list(dict.fromkeys(key for column in columns for key in column))
    lines = []
    for key in keys:
        cells = [column.get(key, "") for column in columns]
        if not any(cells):
            continue
        same = len(set(cells)) == 1 and len(cells) > 1
        data = f"<td colspan='{len(cells)}'>{cells[0]}</td>" if same else "".join(f"<td>{cell}</td>" for cell in cells)
        lines.append(f"<tr><th>{html.escape(shown(key)).replace('_', ' ')}</th>{data}</tr>")
    return "<div class='wide'><table class='machines'>" + "".join(lines) + "</table></div>"


def page(reports):
    out = [
        "<!DOCTYPE html>\n<html xmlns='http://www.w3.org/1999/xhtml' lang='en'><head><meta charset='utf-8'/>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'/>"
        f"<title>miniDirac reports</title><style>{STYLE}</style></head><body><h1>miniDirac reports</h1>"
        "<h2>Machines and verdicts</h2>",
        machines(reports),
    ]
    out += [part(reports) for part in (roofline, errors, scaling, solver_bars, gemm_bars, checks)]
    for name, report in reports:
        if report["rows"]:
            title = f"All {len(report['rows'])} rows of {text(name)} ({text(report['command'])})"
            out.append(f"<details><summary>{title}</summary>{table(report['rows'])}</details>")
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


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message}; see report.py --help")


def main():
    parser = Parser(prog="report.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", metavar="REPORT", nargs="+", help="what --json wrote")
    parser.add_argument(
        "-o", "--output", metavar="FILE.html", required=True, help="the page; one that is there is replaced"
    )
    try:
        arguments = parser.parse_args()
        if os.path.realpath(arguments.output) in map(os.path.realpath, arguments.reports):
            raise BadInput(f"{arguments.output} is one of the reports; give the page another name")
        reports = [(name, load(name)) for name in arguments.reports]
        for name, report in reports:
            rows = report.setdefault("rows", [])
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise BadInput(f"{name} has no list of rows; give a report that miniDirac wrote")
        write(arguments.output, page(reports))
    except BadInput as error:
        print(f"report.py: error: {shown(str(error))}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
