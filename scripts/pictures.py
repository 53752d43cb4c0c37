"""Pictures of report.py as SVG text: axes, points with numbers, curves, bars. Colours are classes of the page's
style, which has one set for light and one for dark paper. Standard library only."""
import html
import math

from compare import number, shown
from plotting import PALETTE, PRECISIONS, operator_name

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 360, 300, 64, 16, 10, 44
DIGIT, LETTER, LINE = 7.4, 6.8, 12  # room for a digit, a letter and a line of 11 pixels, in any font of the system
SHAPES = ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-3.5-3.5h7v7h-7z", "M0-4.8L4.4 3.2H-4.4z", "M0-5L5 0L0 5L-5 0z",
          "M0 4.8L4.4-3.2H-4.4z", "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z"]


def style_of(kind, kinds):
    """The class of a backend and packing, the same in all pictures; of anything else by its place."""
    known = list(PALETTE)
    return f"s{known.index(kind) if kind in known else kinds.index(kind) % 8}"


def shape_of(row):
    precision = row.get("precision")
    return PRECISIONS.index(precision) if precision in PRECISIONS else len(SHAPES) - 1


def operator_of(row):
    """Backend and packing of a row that may lack them."""
    return operator_name({"backend": shown(row.get("backend")), "packing": row.get("packing")})


def plain(value, power=False):
    """A number of an axis: 0.1, 200, else, or if it may, a power of ten with a raised exponent."""
    if value in (0, 1, 10) or not power and 0.001 <= abs(value) < 10000:
        return f"{value:.6g}"
    digit, exponent = f"{value:.0e}".split("e")
    digit = "" if digit == "1" else f"{digit}&#183;"
    return f'{digit}10<tspan dy="-4" font-size="10">{int(exponent)}</tspan>'


def rounded(value):
    """To four digits, without an exponent where there is a choice."""
    return f"{float(f'{value:.4g}'):.7g}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def positive(row, *keys):
    """The values when all are numbers above 0, as a logarithm needs, else None."""
    values = [number(row.get(key)) for key in keys]
    return values if all(value is not None and value > 0 for value in values) else None


class Axis:
    """From the least to the largest of values, with a little room; logarithmic ones are above 0."""

    def __init__(self, values, start, end, label, log=True):
        self.of = math.log10 if log else float
        low, high = self.of(min(values)), self.of(max(values))
        room = max(0.04 * (high - low), 0.08 if log else 0.02 * max(abs(low), abs(high)) or 0.5)
        self.low, self.high = low - room, high + room
        self.start, self.end, self.label, self.log = start, end, label, log
        self.whole = all(float(value).is_integer() for value in values)

    def __call__(self, value):
        return self.place(self.of(value))

    def place(self, at):
        return self.start + (self.end - self.start) * (at - self.low) / (self.high - self.low)

    def ticks(self):
        """(labelled, others): a logarithmic axis has its decades, with 2 and 5 where there are less than two, a tenth
        of a decade where there is none; at most about seven labels."""
        most = abs(self.end - self.start) / 40
        if not self.log or self.high - self.low < 0.5:
            low, high = (10**self.low, 10**self.high) if self.log else (self.low, self.high)
            step = 10.0 ** math.floor(math.log10((high - low) / most))
            step *= next(m for m in (1, 2, 5, 10, 20) if (high - low) / (m * step) <= most)
            step = max(step, 1.0) if self.whole else step
            return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)], []
        first, last = max(math.floor(self.low), -307), min(math.ceil(self.high), 307)
        inside = lambda steps, few=1: [m * 10.0**e for e in range(first, last + 1) if e % few == 0 for m in steps
                                       if self.low <= math.log10(m) + e <= self.high]
        decades = inside((1,))
        if len(decades) < 3:
            return inside((1, 2, 5)), inside((3, 4, 6, 7, 8, 9))
        few = math.ceil(len(decades) / most)
        return inside((1,), few), inside(range(2, 10)) if few == 1 else [d for d in decades if d not in inside((1,), few)]

    def words(self, value):
        return plain(value, self.log and self.high - self.low > 3.5)


def frame(x, y):
    """Axes with their labels; SVG has y downwards."""
    floor, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    out = [f'<rect class="axis" x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{floor - TOP}"/>']
    (labelled, others), (rows, between) = x.ticks(), y.ticks()
    for value in labelled:
        out.append(f'<path class="grid" d="M{x(value):.1f} {floor}V{TOP}"/><path class="axis" d="M{x(value):.1f} {floor}v5"/>'
                   f'<text x="{x(value):.1f}" y="{floor + 17}" text-anchor="middle">{x.words(value)}</text>')
    for value in rows:
        out.append(f'<path class="grid" d="M{LEFT} {y(value):.1f}H{right}"/><path class="axis" d="M{LEFT} {y(value):.1f}h-5"/>'
                   f'<text x="{LEFT - 8}" y="{min(y(value) + 4, floor - 2):.1f}" text-anchor="end">{y.words(value)}</text>')
    minor = "".join(f"M{x(v):.1f} {floor}v3" for v in others) + "".join(f"M{LEFT} {y(v):.1f}h-3" for v in between)
    out.append(f'<path class="axis" d="{minor}"/>' if minor else "")
    out.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x.label}</text>')
    out.append(f'<text transform="translate(12 {(TOP + floor) / 2}) rotate(-90)" text-anchor="middle">{y.label}</text>')
    return "".join(out)


def marker(kind, shape, hollow=False):
    return f'class="{kind}{" hollow" if hollow else ""}" d="{SHAPES[shape % len(SHAPES)]}"'


def legend(entries):
    """entries: (class and shape of a marker, words)."""
    items = (f'<li><svg class="key" viewBox="-6 -6 12 12" aria-hidden="true"><path {mark}/></svg>{html.escape(words)}</li>'
             for mark, words in entries)
    return f"<ul class='legend'>{''.join(items)}</ul>"


def table(heads, rows):
    """In a box that scrolls by itself. rows: lists of texts and numbers."""
    side_of = lambda v: "" if isinstance(v, str) else " class='n'"
    cell = lambda v: f"<td{side_of(v)}>{html.escape(v) if isinstance(v, str) else rounded(v)}</td>"
    lines = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    first = "".join(f"<th{side_of(v)}>{html.escape(head)}</th>" for head, v in zip(heads, rows[0] if rows else heads))
    return f"<div class='wide' tabindex='0'><table><tr>{first}</tr>{lines}</table></div>"


def figure(marks, title, told, words, numbers):
    """A picture with its title, a sentence for those who do not see it, the words below, and the table beside it."""
    return (f'<figure><div class="draw"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
            f'<title>{html.escape(title)}</title><desc>{html.escape(told)}</desc>{"".join(marks)}</svg>'
            f"<figcaption>{words}</figcaption></div>{numbers}</figure>")


def side(figures):
    return "<div class='side'>" + "".join(figures) + "</div>"


def place(boxes, taken, lines):
    """The first of boxes (left, top, right, bottom) that lies in the frame and on none of `taken`, which it joins; on no
    line either if that can be."""
    boxes = [box for box in boxes if LEFT + 1 <= box[0] and box[2] <= WIDTH - RIGHT - 1 and TOP + 1 <= box[1]
             and box[3] <= HEIGHT - BOTTOM - 1]
    for others in (taken + lines, taken):
        for left, top, right, bottom in boxes:
            if all(right <= a or c <= left or bottom <= b or d <= top for a, b, c, d in others):
                taken.append((left, top, right, bottom))
                return left, top, right, bottom
    return None


def numbered(places, taken, lines):
    """The numbers 1, 2, ... of points, each beside its own, where it covers neither points nor other words; a line leads
    to one that stands further away."""
    out = []
    for i, (x, y) in enumerate(places, 1):
        half = (DIGIT * len(str(i)) + 1) / 2
        rings = ((x + (r + half) * math.cos(a * math.pi / 8), y + r * math.sin(a * math.pi / 8))
                 for r in (10, 15, 22, 32, 45, 60, 80, 105, 135, 170)
                 for a in (-2, 2, 6, -6, 0, 8, -4, 4, -1, 1, 3, 5, 7, -7, -5, -3))
        box = place(((a - half, b - LINE / 2, a + half, b + LINE / 2) for a, b in rings), taken, lines)
        if box:
            a, b = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            if math.hypot(a - x, b - y) > 18:
                out.insert(0, f'<path class="axis" d="M{x:.1f} {y:.1f}L{a:.1f} {b:.1f}"/>')
            out.append(f'<text class="number" x="{a:.1f}" y="{b + 4:.1f}" text-anchor="middle">{i}</text>')
    return "".join(out)


def row_name(row, keys=("kernel", "solver", "backend", "packing", "precision", "inner", "reconstruct", "mode", "m", "rhs",
                        "mass", "operation")):
    after = {"rhs": "rhs", "reconstruct": "reals"}
    before = {"mass": "mass ", "inner": "inner ", "m": "m = ", "mode": "hops "}
    return " ".join(before.get(key, "") + shown(row[key]) + (f" {after[key]}" if key in after else "")
                    for key in keys
                    if key in row and row[key] not in ("none", None) and (key, row[key]) != ("mode", "single"))


def said(words, spots, taken, lines):
    """Words at the first free spot: ((x, y) of their middle, (x, y) of what they are about), to which a line leads where
    they stand further away."""
    half = LETTER * len(words) / 2
    boxes = [(x - half, y - LINE / 2, x + half, y + LINE / 2) for (x, y), _ in spots]
    box = place(boxes, taken, lines)
    if not box:
        return ""
    (x, y), (a, b) = spots[boxes.index(box)]
    away = max(abs(b - y) - LINE / 2, abs(a - x) - half) > 12
    leader = f'<path class="axis" d="M{x:.1f} {y:.1f}L{a:.1f} {b:.1f}"/>' if away else ""
    return leader + f'<text class="number" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{html.escape(words)}</text>'


def ceiling_lines(x, y, roof, ceilings, taken, lines):
    """The line y = roof x, as far as the highest ceiling, and the ceilings from it to the right, and their words; the
    lines join `lines`, as boxes."""
    out, words, right = [], [], WIDTH - RIGHT
    shift, top = math.log10(roof[0]) if roof else 0, max((math.log10(c) for c, _ in ceilings), default=math.inf)
    for value, name in sorted(ceilings, reverse=True):
        start, at = x.place(max(x.low, math.log10(value) - shift)) if roof else LEFT, y(value)
        out.append(f'<path class="roof" d="M{start:.1f} {at:.1f}H{right}"/>')
        lines.append((start, at - 1, right, at + 1))
        ways = (1, -1) if any(value < other < value * 3 for other, _ in ceilings) else (-1, 1)  # below its neighbour
        middles = [right - 3 - LETTER * len(name) / 2 - i * 6 for i in range(48)]
        words.append((name, [((a, at + far * way), (a, at)) for far in (8, 14, 24, 38, 55, 75) for way in ways
                             for a in middles]))
    low, high = max(x.low, y.low - shift), min(x.high, y.high - shift, top - shift)
    if roof and low < high:
        ends = [(x.place(a), y.place(a + shift)) for a in (low, high)]
        out.append('<path class="roof" d="M' + "L".join(f"{a:.1f} {b:.1f}" for a, b in ends) + '"/>')
        along = [tuple(a + (b - a) * i / 60 for a, b in zip(*ends)) for i in range(61)]
        lines += [(a - 2, b - 2, a + 2, b + 2) for a, b in along]
        half = LETTER * len(roof[1]) / 2
        words.append((roof[1], [((a + way * (half + far), b + way * far), (a, b)) for far in (8, 14, 24, 38, 55, 75)
                                for way in (1, -1) for i in (30, 22, 38, 14, 46, 6, 54) for a, b in (along[i],)]))
    return "".join(out), "".join(said(*word, taken, lines) for word in words)


def scatter(reports, point, kind_of, title, labels, roofs=None, hollow=lambda row: False):
    """A figure per report, all on the same axes, a numbered point per row: point(row) gives x and y or None. Colours are
    kinds, shapes precisions. roofs, by report: ((GB/s, words) or None, [(ceiling, words)]), as ceiling_lines has them."""
    whole = lambda at: at if at and all(map(math.isfinite, at)) else None
    points = [[(row, whole(point(row))) for row in rows] for _, rows in reports]
    seen = [(row, at) for found in points for row, at in found if at]
    if not seen:
        return "<p>No row has both numbers.</p>"
    roofs = roofs or [(None, [])] * len(reports)
    ridges = [c / roof[0] for roof, ceilings in roofs if roof for c, _ in ceilings]
    x = Axis([at[0] for _, at in seen] + list(filter(math.isfinite, ridges)), LEFT, WIDTH - RIGHT, labels[0])
    tops = [roof[0] * at[0] for roof, ceilings in roofs if roof and not ceilings for _, at in seen]
    tops += [1.15 * c for _, ceilings in roofs for c, _ in ceilings]
    y = Axis([at[1] for _, at in seen] + list(filter(math.isfinite, tops)), HEIGHT - BOTTOM, TOP, labels[1])
    kinds = list(dict.fromkeys(kind_of(row) for row, _ in seen))
    hollows = {kind_of(row): hollow(row) for row, _ in seen}
    shapes = sorted({shape_of(row) for row, _ in seen})
    parts = []
    for (words, _), found, (roof, ceilings) in zip(reports, points, roofs):
        drawn = [(row, at) for row, at in found if at]
        places = [(x(at[0]), y(at[1])) for _, at in drawn]
        taken, lines = [(a - 5, b - 5, a + 5, b + 5) for a, b in places], []
        drawn_lines, said_of_them = ceiling_lines(x, y, roof, ceilings, taken, lines)
        marks = [frame(x, y), drawn_lines]
        for (row, at), (a, b) in zip(drawn, places):
            mark = marker("mark " + style_of(kind_of(row), kinds), shape_of(row), hollow(row))
            name = html.escape(row_name(row))
            marks.append(f'<path {mark} transform="translate({a:.1f} {b:.1f})"><title>{name}</title></path>')
        marks += [numbered(places, taken, lines), said_of_them]
        absent = len(found) - len(drawn)
        words += f"; rows without both numbers, which stand in the table of all alone: {absent}" if absent else ""
        numbers = table(("", "what", *labels), [[i, row_name(row), *at] for i, (row, at) in enumerate(drawn, 1)])
        told = f"{len(drawn)} points, {labels[1]} over {labels[0]}; the table has them."
        parts.append(figure(marks, title, told, words, numbers))
    out = legend([(marker(style_of(kind, kinds), 3, hollows[kind]), kind) for kind in kinds])
    out += legend([(marker("s0", s), (*PRECISIONS, "other")[s]) for s in shapes]) if len(shapes) > 1 else ""
    return out + side(parts)


def curves(groups, title, labels, log=(False, True)):
    """A figure per group (caption, [(name, [(x, y, error or None)])]). Points of several series at one x stand beside each
    other; a line joins those without errors. log: of x and y, where what is not above 0 is left out."""
    parts = []
    for words, series in groups:
        allowed = lambda p: all(v is not None for v in p[:2]) and not any(w and v <= 0 for w, v in zip(log, p))
        series = [(name, [p for p in points if allowed(p)]) for name, points in series]
        series = [(name, points) for name, points in series if points]
        if not series:
            continue
        seen = [p for _, points in series for p in points]
        ends = [p[1] + way * min(p[2] or 0, 0.4 * abs(p[1])) for p in seen for way in (1, -1)]
        x = Axis([p[0] for p in seen], LEFT, WIDTH - RIGHT, labels[0], log[0])
        y = Axis(ends, HEIGHT - BOTTOM, TOP, labels[1], log[1])
        dots = max(len(points) for _, points in series) <= 64
        apart = min(5, 160 / max(1, len({p[0] for p in seen})) / len(series)) if dots and len(series) > 1 else 0
        marks, entries, numbers = [frame(x, y)], [], []
        for j, (name, points) in enumerate(series):
            style, shape = f"s{(j + 1) % 8}", j // 8 + j % 8 if dots else 0
            places = [(x(p[0]) + apart * (j - (len(series) - 1) / 2), y(p[1])) for p in points]
            line = f'class="line {style}{" dashed" if j // 8 % 2 else ""}"'
            if not any(p[2] for p in points):
                marks.append(f'<path {line} d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in places)}"/>')
            for p, (a, b) in zip(points, places) if dots else []:
                if p[2]:
                    low = max(p[1] - p[2], 10**y.low if log[1] else y.low)
                    marks.append(f'<path class="line {style}" d="M{a:.1f} {y(low):.1f}V{max(TOP, y(p[1] + p[2])):.1f}"/>')
                marks.append(f'<path {marker("dot " + style, shape)} transform="translate({a:.1f} {b:.1f}) scale(.75)"/>')
            entries.append((marker(style, shape) if dots else f'{line} d="M-6 0h12"', name))
            numbers += [[name, *("" if v is None else v for v in p)] for p in points]
        heads = ("series", *labels) + (("error",) if any(p[2] for p in seen) else ())
        skip = 1 if len(series) == 1 else 0  # its name is below the picture
        told = f"{len(series)} curves, {labels[1]} over {labels[0]}; the table has them."
        parts.append(figure(marks, title, told, words + legend(e for e in entries if e[1] not in labels),
                            table(heads[skip:], [row[skip:len(heads)] for row in numbers])))
    return side(parts) if parts else ""


def bars(reports, unit):
    """Tables with a bar in each row, all of one linear scale. reports: (caption, [(name, value or None, ends, good)]);
    ends: shortest and longest repetition or []."""
    most = max((end for _, rows in reports for _, v, ends, _ in rows if v for end in [v, *ends]), default=None)
    if not most:
        return "<p>No row has a number.</p>"
    parts = []
    for words, rows in reports:
        lines = []
        for name, value, ends, good in rows:
            drawn = f'<rect class="{"s1" if good else "s3"}" x="0" y="1" width="{1000 * (value or 0) / most:.1f}" height="10"/>'
            if value and ends:
                a, b = (1000 * end / most for end in ends)
                drawn += f'<path class="spread" d="M{a:.1f} 6H{b:.1f}M{a:.1f} 3v6M{b:.1f} 3v6"/>'
            lines.append(f"<tr><td>{html.escape(name)}</td><td class='n'>{rounded(value) if value else 'no'} {unit}</td></tr>"
                         f"<tr class='bar'><td colspan='2'><svg viewBox='0 0 1000 12' preserveAspectRatio='none' "
                         f"aria-hidden='true'>{drawn}</svg></td></tr>")
        parts.append(f"<figure class='list'><figcaption>{words}</figcaption><table class='bars'>{''.join(lines)}</table>"
                     "</figure>")
    return side(parts)
