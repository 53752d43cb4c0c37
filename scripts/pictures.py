"""Pictures of report.py as SVG text: axes, points, bars. Standard library only."""
import html
import math

from compare import number, shown
from plotting import COLOURS, operator_name

OTHERS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#555555", "#e69f00"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 440, 330, 66, 12, 12, 50
BAR = 340  # the longest


def paint(kind, kinds):
    """The colour of a backend and packing, the same in all pictures; of anything else by its place."""
    return COLOURS.get(kind) or OTHERS[kinds.index(kind) % len(OTHERS)]


def operator_of(row):
    """Backend and packing of a row that may lack them."""
    return operator_name({"backend": shown(row.get("backend")), "packing": row.get("packing")})


def plain(value):
    """A number of an axis: 0.1, 200, else a power of ten with a raised exponent."""
    if 0.01 <= value < 10000:
        return f"{value:g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    digit = "" if f"{value:.0e}".startswith("1e") else f"{f'{value:.0e}'[0]}&#183;"
    return f'{digit}10<tspan dy="-5" font-size="10">{exponent}</tspan>'


def svg(marks, height):
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">{"".join(marks)}</svg>'


def positive(row, *keys):
    """The values when all are numbers above 0, as a logarithm needs, else None."""
    values = [number(row.get(key)) for key in keys]
    return values if all(value is not None and value > 0 for value in values) else None


class Axis:
    """A logarithmic axis from `low` to `high`, which covers all reports."""

    def __init__(self, values, start, end, label):
        low, high = math.log10(min(values)), math.log10(max(values))
        room = max(0.08, 0.04 * (high - low))
        self.low, self.high = low - room, high + room
        self.start, self.end, self.label = start, end, label

    def __call__(self, value):
        return self.place(math.log10(value))

    def place(self, logarithm):
        return self.start + (self.end - self.start) * (logarithm - self.low) / (self.high - self.low)

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
            f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{plain(value)}</text>'
        )
    for value in y.ticks():
        out.append(
            f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#e5e5e5"/>'
            f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{plain(value)}</text>'
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x.label}</text>')
    out.append(f'<text transform="translate(13 {middle}) rotate(-90)" text-anchor="middle">{y.label}</text>')
    return "".join(out)


def row_name(row, keys=("solver", "backend", "packing", "precision", "inner", "reconstruct", "mode", "rhs", "mass")):
    return " ".join(
        f"{key} {shown(row[key])}" if key in ("rhs", "mass", "reconstruct", "inner") else shown(row[key])
        for key in keys
        if key in row and row[key] not in ("none", None)
    )


def legend(kinds):
    spans = "".join(f'<span style="color:{paint(k, kinds)}">&#9679; {html.escape(k)}</span>' for k in kinds)
    return f"<p class='legend'>{spans}</p>"


def figures(parts):
    """Figures side by side: (marks, height, caption) each."""
    drawn = (f"<figure>{svg(marks, height)}<figcaption>{words}</figcaption></figure>" for marks, height, words in parts)
    return "<div class='side'>" + "".join(drawn) + "</div>"


def circle(x, y, colour, words):
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity=".8">'
        f"<title>{html.escape(words)}</title></circle>"
    )


def note_absent(absent):
    return f"; {absent} rows without both numbers stand in the table alone" if absent else ""


def scatter(reports, point, kind_of, labels, roofs=None):
    """A figure per report, all on the same axes, a point per row: point(row) gives x and y or None. roofs: GB/s by
    report, drawn as the line y = GB/s x."""
    points = [[(row, point(row)) for row in rows] for _, rows in reports]
    seen = [(row, at) for found in points for row, at in found if at]
    if not seen:
        return "<p>No row has both numbers.</p>"
    roofs = roofs or [None] * len(reports)
    tops = [roof * at[0] for roof in roofs if roof for _, at in seen if math.isfinite(roof * at[0])]
    x = Axis([at[0] for _, at in seen], LEFT, WIDTH - RIGHT, labels[0])
    y = Axis([at[1] for _, at in seen] + tops, HEIGHT - BOTTOM, TOP, labels[1])
    kinds = list(dict.fromkeys(kind_of(row) for row, _ in seen))
    parts = []
    for (words, _), found, roof in zip(reports, points, roofs):
        marks = [frame(x, y)]
        if roof:
            marks.append(f'<path d="{slope_one(x, y, roof)}" stroke="#222" stroke-dasharray="5 4" fill="none"/>')
        for row, at in found:
            if at:
                told = f"{row_name(row)}: {labels[0]} {at[0]:.4g}, {labels[1]} {at[1]:.4g}"
                marks.append(circle(x(at[0]), y(at[1]), paint(kind_of(row), kinds), told))
        parts.append((marks, HEIGHT, words + note_absent(sum(at is None for _, at in found))))
    return legend(kinds) + figures(parts)


def slope_one(x, y, factor):
    """The part of the line y = factor x, on logarithmic axes, that lies in the frame."""
    shift = math.log10(factor)
    low, high = max(x.low, y.low - shift), min(x.high, y.high - shift)
    if low >= high:
        return "M0 0"
    return f"M{x.place(low):.1f} {y.place(low + shift):.1f}L{x.place(high):.1f} {y.place(high + shift):.1f}"


def bars(reports, unit):
    """Bars per report on one linear axis. reports: (caption, [(name, value or None, ends, good)]); ends: shortest and
    longest repetition or []."""
    most = max((end for _, rows in reports for _, v, ends, _ in rows if v for end in [v, *ends]), default=None)
    if not most:
        return "<p>No row has a number.</p>"
    parts = []
    for words, rows in reports:
        marks = []
        for i, (name, value, ends, good) in enumerate(rows):
            top, word = 36 * i, f"{value:.3g} {unit}" if value else f"no {unit}"
            marks.append(
                f'<text x="0" y="{top + 12}">{html.escape(name)}</text>'
                f'<rect x="0" y="{top + 17}" width="{BAR * (value or 0) / most:.1f}" height="10" fill="{OTHERS[0 if good else 1]}"/>'
                f'<text x="{WIDTH}" y="{top + 27}" text-anchor="end">{word}</text>'
            )
            if value and ends:
                path = f"M{BAR * ends[0] / most:.1f} {top + 22}H{BAR * ends[1] / most:.1f}"
                marks.append(f'<path d="{path}" stroke="#222"/>')
        parts.append((marks, 36 * len(rows) + 4, words))
    return figures(parts)
