#!/usr/bin/env python3
"""report.py REPORT... -o FILE.html: one page of JSON reports, with pictures, that needs nothing else.

Several reports stand side by side on the same axes. The page holds the machines, a verdict, every
row of the reports, and for `bench dirac` speed against bytes and against error, for `bench solver`
and `solve` the times. Standard library only.
"""

import argparse
import html
import math
import os
import sys
import tempfile

sys.dont_write_bytecode = True
from compare import BadInput, load, number, shown  # noqa: E402 (a script beside this one)

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#555555", "#e69f00"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 440, 320, 58, 12, 12, 44
STYLE = """
body{font:16px/1.45 system-ui,sans-serif;color:#222;background:#fff;max-width:70rem;margin:0 auto;padding:0 1rem}
h1{font-size:1.5rem} h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid #ccc}
.wide{overflow-x:auto} table{border-collapse:collapse;font-size:.8rem} .machines td{overflow-wrap:anywhere;min-width:8rem}
th,td{border-bottom:1px solid #ddd;padding:.2rem .5rem;text-align:left;vertical-align:top} .n{text-align:right}
.side{display:flex;flex-wrap:wrap;gap:1rem} figure{flex:1 1 20rem;max-width:34rem;min-width:0;margin:0}
figcaption,.legend{font-size:.85rem;overflow-wrap:anywhere} svg{width:100%;height:auto;font:12px system-ui,sans-serif}
.legend span{margin-right:1rem;white-space:nowrap} .PASS{color:#00603f} .FAIL{color:#b00020} b.PASS,b.FAIL{font-weight:bold}
"""


def text(value):
    """Anything of a report as text of the page."""
    if isinstance(value, float):
        value = f"{value:.5g}"
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value) and value:
        value = "; ".join(", ".join(f"{key} {shown(item[key])}" for key in item) for item in value)
    return html.escape("" if value is None else shown(value))


def verdict(report):
    """PASS, FAIL or nothing, and why."""
    rows = [row for row in report.get("rows") or [] if isinstance(row, dict)]
    if report.get("interrupted"):
        return "FAIL", "ended early by a signal"
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


class Axis:
    """A logarithmic axis from `low` to `high`, which covers all reports."""

    def __init__(self, values, start, end, label):
        low, high = math.log10(min(values)), math.log10(max(values))
        room = max(0.08, 0.04 * (high - low))
        self.low, self.high = low - room, high + room
        self.start, self.end, self.label = start, end, label

    def __call__(self, value):
        return self.start + (self.end - self.start) * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self):
        """At most about seven numbers: 1, 2 and 5, or powers of ten, each one or a few apart."""
        first, last = max(math.floor(self.low), -307), min(math.ceil(self.high), 307)
        steps = (1, 2, 5) if self.high - self.low < 2.2 else (1,)
        found = [m * 10.0**e for e in range(first, last + 1) for m in steps]
        found = [value for value in found if self.low <= math.log10(value) <= self.high]
        return found[:: max(1, math.ceil(len(found) / 7))]


def frame(x, y):
    """Axes with their labels; SVG has y downwards."""
    out = [
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}" fill="none" stroke="#999"/>'
    ]
    for value in x.ticks():
        out.append(
            f'<path d="M{x(value):.1f} {HEIGHT - BOTTOM}v5" stroke="#999"/>'
            f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:g}</text>'
        )
    for value in y.ticks():
        out.append(
            f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#e5e5e5"/>'
            f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x.label}</text>')
    out.append(f'<text transform="translate(13 {middle}) rotate(-90)" text-anchor="middle">{y.label}</text>')
    return "".join(out)


def positive(row, *keys):
    """The values when all are numbers above 0, as a logarithm needs, else None."""
    values = [number(row.get(key)) for key in keys]
    return values if all(value is not None and value > 0 for value in values) else None


def row_name(row, keys=("solver", "backend", "packing", "precision", "inner", "reconstruct", "mode", "rhs", "mass")):
    return " ".join(
        f"{key} {shown(row[key])}" if key in ("rhs", "mass", "reconstruct", "inner") else shown(row[key])
        for key in keys
        if key in row and row[key] not in ("none", None)
    )


def scatter(reports, key, label, colour_key, roof):
    """A figure a report: GFLOP/s against `key`. With `roof`, a bar over each row where the memory's bound is."""
    points = {name: [(row, positive(row, key, "gflops")) for row in report["rows"]] for name, report in reports}
    seen = [(row, at) for found in points.values() for row, at in found if at]
    if not seen:
        return "<p>No row has both numbers.</p>"
    roofs = {id(row): at[1] / share[0] for row, at in seen if roof and (share := positive(row, "roofline_fraction"))}
    roofs = {key: value for key, value in roofs.items() if math.isfinite(value)}
    x = Axis([at[0] for _, at in seen], LEFT, WIDTH - RIGHT, label)
    y = Axis([at[1] for _, at in seen] + list(roofs.values()), HEIGHT - BOTTOM, TOP, "GFLOP/s")
    kinds = list(dict.fromkeys(shown(row.get(colour_key)) for row, _ in seen))
    colour = {kind: COLOURS[i % len(COLOURS)] for i, kind in enumerate(kinds)}
    out = [
        "<p class='legend'>"
        + "".join(f'<span style="color:{colour[k]}">&#9679; {html.escape(k)}</span>' for k in kinds)
        + "</p><div class='side'>"
    ]
    for name, report in reports:
        marks, absent = [frame(x, y)], sum(at is None for _, at in points[name])
        for row, at in points[name]:
            if not at:
                continue
            paint, (px, py) = colour[shown(row.get(colour_key))], (x(at[0]), y(at[1]))
            if id(row) in roofs:
                top = y(roofs[id(row)])
                marks.append(
                    f'<path d="M{px - 6:.1f} {top:.1f}h12M{px:.1f} {top:.1f}V{py:.1f}" stroke="{paint}" stroke-opacity=".35" fill="none"/>'
                )
            marks.append(
                f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{paint}" fill-opacity=".8">'
                f"<title>{html.escape(row_name(row))}: {at[1]:.4g} GFLOP/s, {html.escape(label)} {at[0]:.3g}</title></circle>"
            )
        note = f"; {absent} rows without both numbers stand in the table alone" if absent else ""
        out.append(f"<figure>{svg(marks, HEIGHT)}<figcaption>{caption(name, report)}{note}</figcaption></figure>")
    return "".join(out) + "</div>"


def svg(marks, height):
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">{"".join(marks)}</svg>'


def caption(name, report):
    machine = report.get("machine") if isinstance(report.get("machine"), dict) else {}
    gpus = machine.get("gpu") if isinstance(machine.get("gpu"), list) else []
    device = next((gpu["name"] for gpu in gpus if isinstance(gpu, dict) and gpu.get("name")), machine.get("cpu"))
    return ", ".join(text(part) for part in (name, device, machine.get("date_utc")) if part)


def solver_bars(reports):
    """Seconds per right-hand side, on one linear axis, with a line from the shortest to the longest."""
    bars = {}
    for name, report in reports:
        lines = report["rows"] if report["command"] == "bench solver" else [report]
        bars[name] = []
        for row in lines:
            rhs = (positive(row, "rhs") or [1])[0]
            time = positive(row, "seconds_per_rhs") or [t / rhs for t in positive(row, "solver_seconds") or []]
            ends = [t / rhs for t in positive(row, "seconds_min", "seconds_max") or []]
            bars[name].append((row, time[0] if time else None, ends))
    most = max(
        (end for found in bars.values() for _, time, ends in found if time for end in [time, *ends]), default=None
    )
    if not most:
        return "<p>No solve has a time.</p>"
    out = ["<div class='side'>"]
    for name, report in reports:
        marks = []
        for i, (row, time, ends) in enumerate(bars[name]):
            top, word = 34 * i, f"{time:.4g} s" if time else "no time"
            fill = COLOURS[0] if row.get("converged") is True else COLOURS[1]
            marks.append(
                f'<text x="0" y="{top + 12}">{html.escape(row_name(row))}</text>'
                f'<rect x="0" y="{top + 16}" width="{340 * (time or 0) / most:.1f}" height="10" fill="{fill}"/>'
                f'<text x="{WIDTH}" y="{top + 26}" text-anchor="end">{word}</text>'
            )
            if time and ends:
                marks.append(
                    f'<path d="M{340 * ends[0] / most:.1f} {top + 21}H{340 * ends[1] / most:.1f}" stroke="#222"/>'
                )
        out.append(
            f"<figure>{svg(marks, 34 * len(bars[name]) + 4)}<figcaption>{caption(name, report)}</figcaption></figure>"
        )
    return "".join(out) + "</div><p class='legend'>The other colour: the tolerance was missed.</p>"


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
    lines = (
        f"<tr><th>{html.escape(shown(key))}</th>" + "".join(f"<td>{c.get(key, '')}</td>" for c in columns) + "</tr>"
        for key in keys
    )
    return "<div class='wide'><table class='machines'>" + "".join(lines) + "</table></div>"


def page(reports):
    out = [
        "<!DOCTYPE html>\n<html xmlns='http://www.w3.org/1999/xhtml' lang='en'><head><meta charset='utf-8'/>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'/>"
        f"<title>miniDirac reports</title><style>{STYLE}</style></head><body><h1>miniDirac reports</h1>"
        "<h2>Machines and verdicts</h2>",
        machines(reports),
    ]
    stencils = [
        (n, r) for n, r in reports if r["command"] == "bench dirac" and any("backend" in row for row in r["rows"])
    ]
    solvers = [(n, r) for n, r in reports if r["command"] in ("bench solver", "solve")]
    if stencils:
        out += [
            "<h2>Speed of the stencil against bytes</h2><p>Bytes are those that must move per lattice site. The bar over a "
            "point is what the measured memory bandwidth allows it.</p>",
            scatter(stencils, "site_bytes", "bytes per site", "backend", True),
            "<h2>Speed against error</h2><p>The error is relative to the double-precision reference.</p>",
            scatter(stencils, "error", "relative error", "precision", False),
        ]
    if solvers:
        out += ["<h2>Solver times per right-hand side</h2>", solver_bars(solvers)]
    for name, report in reports:
        if report["rows"]:
            out += [f"<h2>Rows of {text(name)} ({text(report['command'])})</h2>", table(report["rows"])]
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
