#!/usr/bin/env python3
"""Faults of faults.ini in a copy of the tree, and the targets of fuzzing that must find them.

  faults.py --check      every text stands in its file exactly once
  faults.py [NAME ...]   puts each fault (all; or those whose name holds one of the words) into the
                         copy, builds its target alone and runs it as tests/fuzz/run.sh does in CI;
                         first all these targets without a fault, which must find nothing

The copy and its build lie in build/fuzz-faults (--work DIR). Exit code 1: a fault was not found.
"""
import argparse
import configparser
import os
import sys
import time

sys.dont_write_bytecode = True  # no folder of it in the tree
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "mutations"))
import run as mutations  # noqa: E402 (the folder is made known above)


def read_faults():
    parser = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#",),
                                       interpolation=None, strict=True)
    parser.read(os.path.join(HERE, "faults.ini"))
    return [{"name": name, "room": "faults", **parser[name]} for name in parser.sections()]


def fuzz(copy, targets, seconds):
    """(exit code, last lines) of a run of these targets."""
    environment = dict(os.environ, MINIDIRAC_FUZZ_TARGETS=" ".join(targets),
                       MINIDIRAC_FUZZ_BUILD=copy.build)
    done = mutations.shell(["bash", os.path.join(copy.tree, "tests", "fuzz", "run.sh"),
                            str(seconds)], env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("fuzz ")]
    return done.returncode, lines or done.stdout.splitlines()[-20:]


def attempt(copy, fault, seconds):
    with open(os.path.join(mutations.SOURCE, fault["file"]), "rb") as file:
        original = file.read()
    start = time.monotonic()
    copy.put(fault["file"], original.replace(fault["old"].encode(), fault["new"].encode()))
    try:
        code, lines = fuzz(copy, [fault["test"]], seconds)
    finally:
        copy.put(fault["file"], original)
    verdict = {0: "survived", 1: "found"}.get(code, "does not run")
    print(f"{fault['name']:<34} {verdict:<13} {time.monotonic() - start:6.1f} s", *lines[:1],
          flush=True)
    if code not in (0, 1):
        print(*lines, sep="\n", flush=True)
    return code == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="words of the names to try")
    parser.add_argument("--check", action="store_true", help="only check that the entries fit the tree")
    parser.add_argument("--work", default=os.path.join(mutations.SOURCE, "build", "fuzz-faults"),
                        help="folder for the copy and its build")
    parser.add_argument("--seconds", type=int, default=10, help="of each run [10]")
    arguments = parser.parse_args()
    faults = [f for f in read_faults() if not arguments.names
              or any(word in f["name"] for word in arguments.names)]
    problems = [f"{f['name']}: {p}" for f in faults
                for p in mutations.problems_of(f, mutations.SOURCE)]
    print(*problems, f"{len(faults)} faults, {len(problems)} problems", sep="\n", flush=True)
    if problems or arguments.check:
        return not problems
    copy = mutations.Copy(os.path.abspath(arguments.work), os.cpu_count())
    copy.synchronise()
    code, lines = fuzz(copy, sorted({f["test"] for f in faults}), arguments.seconds)
    print(*lines, sep="\n", flush=True)
    if code != 0:
        sys.exit("these targets find something without any fault, or do not run")
    found = [attempt(copy, fault, arguments.seconds) for fault in faults]
    print(f"{sum(found)} of {len(found)} found")
    return all(found)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
