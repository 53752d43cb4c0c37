"""What the plot scripts share."""
import csv
import json
import sys

# One colour for each backend and packing, everywhere; distinguishable also by the colour-blind.
COLOURS = {
    "cpu_ref": "#555555",
    "cpu_simd": "#0072b2",
    "cuda": "#009e73",
    "tensor stacked": "#d55e00",
    "tensor block8": "#cc79a7",
    "tensor diagonal": "#e69f00",
    "tensor single": "#56b4e9",
    "tensor_emu stacked": "#a04000",
    "tensor_emu block8": "#8f5577",
    "tensor_emu diagonal": "#9a6a00",
    "tensor_emu single": "#3b7a9e",
}
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


def read_rows(path):
    """Rows of a CSV, or of a JSON report as strings too but for lists, and that report (else None)."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            if not path.endswith(".json"):
                return list(csv.DictReader(file)), None
            report = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"{path} cannot be read: {error}")
    word = lambda value: value if isinstance(value, list) else "" if value is None else str(value)
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


def caption(figure, report, work=""):
    """What was done, and machine, date and commit of a report, below the panels; a text is taken as it is."""
    words = report or ""
    if isinstance(report, dict):
        machine = report.get("machine") or {}
        gpus = machine.get("gpu") or []
        device = next((gpu["name"] for gpu in gpus if gpu.get("name")), machine.get("cpu"))
        words = ", ".join(str(word) for word in (device, machine.get("date_utc"), report.get("commit")) if word)
    if work or words:
        figure.supxlabel("; ".join(part for part in (work, words) if part), fontsize=7, color="#555555")
