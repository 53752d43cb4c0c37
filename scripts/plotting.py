"""What the plot scripts share."""
import csv
import math
import os
import sys

import compare

# For each backend and packing a colour on light paper and one on dark, everywhere; distinguishable also by the
# colour-blind, and by at least 3 to 1 from the paper.
PALETTE = {
    "cpu_ref": ("#555b61", "#b5bcc4"),
    "cpu_simd": ("#0072b2", "#58b4f0"),
    "cuda": ("#00805c", "#2fc795"),
    "tensor stacked": ("#c44e00", "#ff8a4c"),
    "tensor block8": ("#b34f8f", "#e58cc4"),
    "tensor diagonal": ("#8a6d00", "#e0b83a"),
    "tensor single": ("#6a51c9", "#a99bff"),
    "tensor_emu stacked": ("#a1232b", "#ff9aa0"),
    "tensor_emu block8": ("#7d4a6b", "#c99ab8"),
    "tensor_emu diagonal": ("#6b5a1e", "#bfae6a"),
    "tensor_emu single": ("#40358a", "#8f88d8"),
}
COLOURS = {name: light for name, (light, _) in PALETTE.items()}
PRECISIONS = ("double", "single", "half", "bf16", "fixed")


def pyplot():
    """matplotlib.pyplot for files; ends the script with how to get it where it is missing."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("this script needs matplotlib; install it with apt-get install python3-matplotlib, or pip")
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def save(figure, path, dpi):
    """Writes a picture; a name under which none can be written, or that of what was read, is bad input."""
    if os.path.realpath(path) in compare.READ:
        raise compare.BadInput(f"{path} is what the picture is made of; give the picture another name")
    try:
        figure.savefig(path, dpi=dpi)
    except OSError as error:
        raise compare.BadInput(f"{path} cannot be written: {error.strerror or error}; name a file in a folder that is there") from error
    except ValueError as error:
        raise compare.BadInput(f"{path} cannot be written: {error}; name a .png") from error


def read_rows(path):
    """Rows of a CSV, or of a JSON report as strings too but for lists, and that report (else None)."""
    if not path.endswith(".json"):
        try:
            with open(path, newline="", encoding="utf-8") as file:
                compare.READ.add(os.path.realpath(path))
                return list(csv.DictReader(file)), None
        except (OSError, ValueError, csv.Error) as error:
            raise compare.BadInput(f"{path} cannot be read: {error}; give what --csv or --json wrote") from error
    report = compare.document(path)
    word = lambda value: value if isinstance(value, list) else "" if value is None else str(value)
    with compare.reading(path, "a report with rows"):
        return [{key: word(value) for key, value in row.items()} for row in report.get("rows", [])], report


def operator_name(row):
    """Backend and packing of a row, as COLOURS has them."""
    return row["backend"] if row["packing"] in ("none", "", None) else f"{row['backend']} {row['packing']}"


def colour(row):
    return COLOURS.get(operator_name(row), "#000000")


def plain(value):
    """0.1, 200, else a power of ten."""
    if 0.001 <= value < 1e5:
        return f"{value:g}"
    digit, exponent = f"{value:.0e}".split("e")
    power = f"$10^{{{int(exponent)}}}$"
    return power if digit == "1" else f"{digit} {power}"


def few_ticks(axis, values):
    """Labels at most six of the values on a logarithmic axis (axis.xaxis or axis.yaxis), as plain numbers."""
    values = sorted(set(values))
    kept = values[:: max(1, -(-len(values) // 6))]
    axis.set_ticks(kept, [plain(value) for value in kept])
    axis.set_ticks([], minor=True)


def decades(axis, values):
    """Labels the decades of a logarithmic axis around values above 0, with 2 and 5 where there are few; ticks between."""
    low, high = min(values) / 2, 2 * max(values)
    inside = lambda steps: [m * 10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
                            for m in steps if low <= m * 10.0**e <= high]
    few_ticks(axis, inside((1, 2, 5)) if len(inside((1, 2, 5))) <= 6 else inside((1,)))
    between = inside(range(2, 10))
    axis.set_ticks(between, [""] * len(between), minor=True)


def machine_of(report):
    return report["machine"] if isinstance(report.get("machine"), dict) else {}


def device_of(report):
    """GPU, or else processor."""
    machine = machine_of(report)
    gpus = machine["gpu"] if isinstance(machine.get("gpu"), list) else []
    return next((gpu["name"] for gpu in gpus if isinstance(gpu, dict) and gpu.get("name")), machine.get("cpu"))


def caption(figure, report, work=""):
    """What was done, and machine, date and commit of a report, below the panels; a text is taken as it is."""
    words = report or ""
    if isinstance(report, dict):
        facts = (device_of(report), machine_of(report).get("date_utc"), report.get("commit"))
        words = ", ".join(str(word) for word in facts if word)
    if work or words:
        parts = ("\n" if "\n" in work else "; ").join(part for part in (work, words) if part)
        figure.supxlabel(parts.replace("$", r"\$"), fontsize=7, color="#555555")
