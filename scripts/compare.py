#!/usr/bin/env python3
"""compare.py OLD NEW: what became slower between two reports of one benchmark.

OLD and NEW are JSON reports of the same `minidirac bench` command. Rows are matched by what they
measured; their median times are compared. The noise of a pair is half the way from the shortest to
the longest repetition, relative to the median, of both rows added in quadrature. A row is slower
where its time grew by more than threshold and noise together, and unsure where the threshold alone
is passed; it failed where NEW missed its tolerance or bound and OLD, whose time says nothing then, did not. Of two suites the figure of merit
comes first, and their ranks may differ in number. Exit 0: no row is slower or failed; 1: some are; 2: bad input.
Standard library only.

With --ratios the reports may be of two machines: what is compared is not a row's time, but that time
over one that the same run measured beside it: a hop over the triad or copy of its memory, a product
over its library, a transpose, shift or product with a vector over a copy, a solve over the first one.
Where a row tells the spread of both, the shortest time and the highest bandwidth are taken, which a
busy machine disturbs least.
"""

import argparse
import collections
import contextlib
import json
import math
import os
import signal
import sys

COMMON = ["action", "Ls", "M5", "b5", "c5", "imaginary_mu", "flux_quanta", "dims", "ranks", "threads", "transport"]
OPERATOR = ["backend", "packing", "precision", "reconstruct", "rhs"]
SMALL = ["type", "rows", "columns", "width", "height", "block", "space"]
# By command, what a row measured; keys that a row lacks are passed over.
IDENTITY = {
    "bench dirac": OPERATOR + ["mode", "kernel", "count"] + COMMON,
    "bench solver": ["solver", "precondition", "degree", "mass", "inner", "outer_backend"] + OPERATOR + COMMON,
    "bench suite": ["part", "work", "format", "kernel", "space", "solver", "inner", "m"] + OPERATOR + COMMON,
    "bench gemm": ["kernel", "precision", "m", "n", "k", "grid", "alpha", "beta", "block", "local_kernel", "host_memory",
                   "pitched"] + COMMON,
    "bench copy": ["kernel", "space", "bytes"] + COMMON,
    "bench transpose": ["kernel"] + SMALL + COMMON,
    "bench shift": ["kernel"] + SMALL + COMMON,
    "bench gemv": ["kernel"] + SMALL + COMMON,
}
SAME_WORK = ["tolerance", "shifts", "class", "u0", "naik_epsilon", "modes.count"]  # keys of a report without which its rows are other work
PER_RUN = ["ranks", "threads", "transport"]  # no part of what a row is where ranks differ in number
# By command, the speed of a row relative to another of the same run, the first key that it has: what --ratios compares.
RATIOS = {
    "bench dirac": ["roofline_fraction"],
    "bench gemm": ["vs_reference"],
    "bench solver": ["speedup"],
    "bench suite": ["roofline_fraction", "vs_reference", "speedup"],
    "bench transpose": ["copy_fraction"],
    "bench shift": ["copy_fraction"],
    "bench gemv": ["copy_fraction"],
}
TIMES = ["seconds_median", "seconds_kernel", "seconds_mean"]  # the first that a row has


READ = set()  # files that were read, which no picture may take the place of


class BadInput(Exception):
    pass


def shown(value):
    """A value of a report as one printable word."""
    text = "x".join(map(shown, value)) if isinstance(value, list) else value if isinstance(value, str) else json.dumps(value)
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def number(value):
    """A finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def document(name):
    """The object of a JSON file; of a report with its job script, as in results/, the report."""
    try:
        with open(name, encoding="utf-8") as file:
            report = json.load(file)
        READ.add(os.path.realpath(name))
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror}; give a report that --json wrote") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is no JSON ({error}); give a report that --json wrote") from error
    if not isinstance(report, dict):
        raise BadInput(f"{name} is no report of miniDirac: it names no command")
    return report["report"] if isinstance(report.get("report"), dict) else report


def entry(report, path):
    """What stands under keys with dots between them; None: nothing."""
    for key in path.split("."):
        report = report.get(key) if isinstance(report, dict) else None
    return report


def load(name):
    """A report, as far as every command's must be one."""
    report = document(name)
    if not isinstance(report.get("command"), str):
        raise BadInput(f"{name} is no report of miniDirac: it names no command")
    if report.get("schema_version", 1) != 1:
        raise BadInput(f"{name} has schema version {shown(report['schema_version'])}; this script knows 1")
    return report


@contextlib.contextmanager
def reading(name, kind, remedy="give what minidirac wrote"):
    """What is read in here of a file that must be of this kind, and is not there or another thing, is bad input."""
    try:
        yield
    except (AttributeError, TypeError, KeyError, IndexError, ValueError, OverflowError) as error:
        fault = f"no {error}" if isinstance(error, KeyError) else error
        raise BadInput(f"{name} must be {kind}, got one with a fault: {fault}; {remedy}") from error


def rows_of(report, name, without):
    """The rows of a benchmark by what they measured, without some keys; one that stands there again gets a number."""
    keys, rows, found = IDENTITY.get(report["command"]), report.get("rows"), {}
    if not keys:
        raise BadInput(f"{name} is of '{shown(report['command'])}'; rows can be matched of: {', '.join(IDENTITY)}")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadInput(f"{name} has no list of rows; give a report that a benchmark wrote")
    for row in rows:
        identity = tuple((key, shown(row[key])) for key in keys if key in row and key not in without)
        times = sum(known[:-1] == identity for known in found)
        found[identity + (times,)] = row
    return found


def timed(row):
    """Median and relative noise of a row's time; None where it was not timed."""
    name = next((key for key in TIMES if number(row.get(key))), None)
    median = number(row[name]) if name else None
    if median is None or median <= 0:
        return None
    mean, spread = number(row.get("seconds_mean")), number(row.get("seconds_std"))
    kind = name if name == "seconds_kernel" else "seconds"
    low, high = number(row.get(f"{kind}_min")), number(row.get(f"{kind}_max"))
    if mean is not None and spread is not None:  # two deviations where no longest time is told
        low, high = (mean - spread if low is None else low), (mean + spread if high is None else high)
    noise = (high - low) / 2 / median if low is not None and high is not None else 0.0
    return median, max(noise, 0.0)


def failed(row):
    """Whether a solve missed its tolerance or a product its bound: its time says nothing."""
    excess = number(row.get("excess"))
    judged = "excess" in row and row.get("checked") != "off"
    return row.get("converged") is False or judged and (excess is None or excess > 1)


def broken_down(report):
    """The solves that broke down, which have no row, and how often each."""
    skipped = report.get("skipped")
    broken = [one for one in skipped if isinstance(one, dict) and one.get("failed") is True] if isinstance(skipped, list) else []
    return collections.Counter(str(sorted((k, str(v)) for k, v in one.items() if k not in ("reason", "kappa"))) for one in broken)


def slowness(row, keys):
    """The reciprocal of a row's relative speed, with the noise of its time and of the bandwidth beside it."""
    time, speed = timed(row), next((number(row[key]) for key in keys if key in row), None)
    if time is None or speed is None or speed <= 0:
        return None
    shortest = number(row.get("seconds_min"))
    beside, low, high = (number(row.get("bandwidth_gbytes_per_s" + end)) for end in ("", "_min", "_max"))
    if not all((shortest, beside, low, high)):
        return 1 / speed, time[1]
    return shortest / time[0] * high / beside / speed, math.hypot(time[1], max((high - low) / 2 / beside, 0.0))


def rebase(old, new):
    """Where two reports give speed-ups over different rows of a part and mass, those over the first that both have.
    A row that missed its tolerance has none, and none is over it."""
    def group_of(row):
        return tuple(shown(row.get(key)) for key in ("part", "mass"))

    firsts, bases = [{}, {}], {}
    for found, rows in zip(firsts, (old, new)):
        for identity, row in rows.items():
            if number(row.get("speedup")):
                found.setdefault(group_of(row), identity)
    for identity in [identity for identity in old if identity in new]:
        rows, group = (old[identity], new[identity]), group_of(old[identity])
        if firsts[0].get(group) != firsts[1].get(group) and all(number(row.get("speedup")) for row in rows):
            base = bases.setdefault(group, [row["speedup"] for row in rows])
            for row, of_base in zip(rows, base):
                row["speedup"] /= of_base


def verdict(ratio, noise, threshold):
    for word, growth in (("slower", ratio - 1), ("faster", 1 / ratio - 1 if ratio else math.inf)):
        if growth > threshold:
            return word if growth > threshold + noise else f"{word}?"
    return "same"


def names(identities):
    """Short names: what is the same in all rows is said once, in front."""
    values = {}
    for identity in identities:
        for key, value in identity[:-1]:
            values.setdefault(key, set()).add(value)
    whole = {key for key in values if all(key in dict(identity[:-1]) for identity in identities)}
    constant = {key: min(found) for key, found in values.items() if len(found) == 1 and key in whole}
    short = {}
    for identity in identities:
        words = [f"{key}={value}" for key, value in identity[:-1] if key not in constant]
        short[identity] = " ".join(words + [f"#{identity[-1] + 1}"] * (identity[-1] > 0)) or "row"
    return " ".join(f"{key}={value}" for key, value in constant.items()), short


def check_same_work(old_report, new_report):
    """Refuses reports whose rows are other work although they are called the same."""
    for key in SAME_WORK:
        a, b = (entry(report, key) for report in (old_report, new_report))
        if a != b:
            raise BadInput(f"the reports must be of the same work: {key} is {shown(a)} and {shown(b)}")
    for key in ("plaquette", "fat_plaquette"):
        links = [number(report.get(key)) for report in (old_report, new_report)]
        if None not in links and not math.isclose(*links, rel_tol=1e-9):  # rounding of other machines
            raise BadInput(f"the reports must be of the same links: {key} is {links[0]:.12g} and {links[1]:.12g}")


def compare(old_name, new_name, threshold, ratios):
    old_report, new_report = load(old_name), load(new_name)
    if old_report["command"] != new_report["command"]:
        words = " and ".join(f"'{shown(report['command'])}'" for report in (old_report, new_report))
        raise BadInput(f"the reports must be of one command, got {words}")
    check_same_work(old_report, new_report)
    keys, suite = RATIOS.get(old_report["command"]), old_report["command"] == "bench suite"
    if ratios and not keys:
        raise BadInput(f"'{shown(old_report['command'])}' has no ratios; those that have: {', '.join(RATIOS)}")
    measure = (lambda row: slowness(row, keys)) if ratios else timed
    other_ranks = suite and old_report.get("ranks") != new_report.get("ranks")
    without = PER_RUN if other_ranks else []
    old, new = rows_of(old_report, old_name, without), rows_of(new_report, new_name, without)
    if ratios and suite:  # copies, halos and files are compared with nothing of their run
        old, new = ({i: row for i, row in rows.items() if any(key in row for key in keys)} for rows in (old, new))
    if ratios:
        rebase(old, new)
    both = [identity for identity in old if identity in new]
    if not both:
        raise BadInput(f"no row of {old_name} is in {new_name}; compare runs with the same options")
    same, short = names(list(dict.fromkeys([*old, *new])))
    print(f"{shown(old_report['command'])}: {same}" if same else shown(old_report["command"]))
    if suite:
        figures_of(old_report, new_report)
    if other_ranks:
        ranks = " and ".join(shown(report.get("ranks")) for report in (old_report, new_report))
        print(f"note: {ranks} ranks: rows of the same work are compared, but copy moves as much by each rank")
    warn_of_machines(old_report, new_report)
    if ratios:
        print(f"compared: 1 / {', '.join(keys)}")
    lines, missing = [], [f"only in OLD: {short[i]}" for i in old if i not in new]
    missing += [f"only in NEW: {short[i]}" for i in new if i not in old]
    failures = new_report.get("pass") is False and old_report.get("pass") is not False
    missing += ["failed in NEW: a check of the suite"] * failures
    more = len(broken_down(new_report) - broken_down(old_report))
    missing += ["failed in NEW: a solve that broke down"] * (more > 0)
    failures += more
    for identity in both:
        a, b = measure(old[identity]), measure(new[identity])
        broken = failed(new[identity]) and not failed(old[identity])
        if not a or not b:
            missing.append(f"not timed in {'OLD' if not a else 'NEW'}: {short[identity]}" + ", where it failed" * broken)
            failures += broken
            continue
        ratio, noise = b[0] / a[0], math.hypot(a[1], b[1])
        word = "failed" if broken else "failed before" if failed(old[identity]) else verdict(ratio, noise, threshold)
        lines.append((ratio, short[identity], a[0], b[0], noise, word))
    if not lines and not failures:
        raise BadInput(f"no row that {old_name} and {new_name} share was timed in both")
    width = max((len(line[1]) for line in lines), default=0)
    unit = "" if ratios else " s"
    print(f"{'row':{width}}  {'old' + unit:>10}  {'new' + unit:>10}  {'new/old':>7}  {'noise':>6}  verdict")
    for ratio, name, a, b, noise, word in sorted(lines, key=lambda line: -line[0]):
        print(f"{name:{width}}  {a:10.4g}  {b:10.4g}  {ratio:7.3f}  {100 * noise:5.1f}%  {word}")
    print(*missing, sep="\n", end="\n" if missing else "")
    slower = sum(line[-1] == "slower" for line in lines)
    failures += sum(line[-1] == "failed" for line in lines)
    print(f"{slower} of {len(lines)} rows slower by more than {100 * threshold:g} % and noise" + f", {failures} failed" * (failures > 0))
    return 1 if slower or failures else 0


def figures_of(old, new):
    """The figures of merit of two suites, and of each core or GPU."""
    if old.get("action") != new.get("action"):
        return
    for key, name in (("figure_of_merit", "figure of merit"), ("sites_rhs_per_second_per_device", "sites x rhs / s, each")):
        a, b = (number(report.get(key)) for report in (old, new))
        if a and b:
            print(f"{name}: {a:.4g} {b:.4g}, new/old {b / a:.3f}")
    for word, report in (("OLD", old), ("NEW", new)):
        if number(report.get("figure_of_merit")) and report.get("official") is False:
            print(f"note: the figure of {word} is not official: {shown(report.get('not_official'))}")


def warn_of_machines(old, new):
    """Times of two machines may be compared, but the reader should know."""
    machines = [report["machine"] if isinstance(report.get("machine"), dict) else {} for report in (old, new)]
    for key in ("host", "cpu", "gpu", "threads", "compiler", "compiler_flags"):
        a, b = (json.dumps(machine.get(key), sort_keys=True) for machine in machines)
        if a != b and all(machines):
            print(f"note: {key} was {shown(a)}, is {shown(b)}")
    for word, report in (("OLD", old), ("NEW", new)):
        if report.get("interrupted"):
            print(f"note: the run of {word} was ended early")


class Parser(argparse.ArgumentParser):
    """Of a script: its help is the script's text as it stands."""

    def __init__(self, text, prog=None):
        super().__init__(prog=prog, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message):
        raise BadInput(f"{message}; see {self.prog} --help")


@contextlib.contextmanager
def refusals(script):
    """Bad input in here ends the script of this name with one line and exit code 2."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, as `head`, has what it wants; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (BadInput, OSError) as error:
        print(f"{script}: error: {shown(str(error))}", file=sys.stderr)
        sys.exit(2)


def percent(text):
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number from 0 on, got {text}")
    return value


def main():
    parser = Parser(__doc__, "compare.py")
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--threshold", type=percent, default=5.0, metavar="PERCENT",
                        help="growth of time that counts, beyond noise [5]")
    parser.add_argument("--ratios", action="store_true", help="compare times over others of the same run")
    with refusals("compare.py"):
        arguments = parser.parse_args()
        code = compare(arguments.old, arguments.new, arguments.threshold / 100, arguments.ratios)
    sys.exit(code)


if __name__ == "__main__":
    main()
