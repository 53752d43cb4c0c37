#!/usr/bin/env python3
"""One-line faults and the tests that must find them.

Each *.ini file of this folder holds the faults of one room. A fault is a section:
  file    the source file
  old     a text that stands there exactly once, within one line
  new     what takes its place (nothing: the text is dropped)
  breaks  what is then wrong
  test    the tests that look, as a regular expression for ctest -R: the narrowest that will do

  run.py --check              every text stands in its file exactly once
  run.py [NAME ...]           applies the faults (all; or those whose name holds one of the words) to
                              a copy of the tree, one after another, and runs their tests; a fault
                              that was found before, with its file and its tests' files as they
                              were, is not tried again unless --again is given

The copy and its build lie in build/mutations (--work DIR). They do without CUDA and without files
from outside the tree. Exit code 1: a fault survived, or a check failed.
"""
import argparse
import configparser
import hashlib
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
KEYS = {"file", "old", "new", "breaks", "test"}
TEST_TIMEOUT_S = 100


def read_faults():
    """All faults, in the order of the files and sections."""
    faults = []
    for ini in sorted(f for f in os.listdir(HERE) if f.endswith(".ini")):
        parser = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#",),
                                           interpolation=None, strict=True)
        parser.read(os.path.join(HERE, ini))
        for name in parser.sections():
            faults.append({"name": name, "room": ini[:-4], **parser[name]})
    return faults


def problems_of(fault, root):
    """What is wrong with the entry itself, as a list of sentences."""
    found = []
    given = set(fault) - {"name", "room"}
    if given != KEYS:
        return [f"needs the keys {sorted(KEYS)}, has {sorted(given)}"]
    path = os.path.join(root, fault["file"])
    if not os.path.isfile(path):
        return [f"{fault['file']} is not there"]
    with open(path, encoding="utf-8") as file:
        count = file.read().count(fault["old"])
    if count != 1:
        found.append(f"'{fault['old']}' stands {count} times in {fault['file']}, not once")
    if fault["old"] == fault["new"] or not fault["old"]:
        found.append("old and new must differ, and old must say something")
    if not fault["test"] or not fault["breaks"]:
        found.append("test and breaks must say something")
    return found


def check(faults):
    failures = 0
    names = [f["name"] for f in faults]
    for fault in faults:
        problems = problems_of(fault, SOURCE)
        if names.count(fault["name"]) > 1:
            problems.append("has a name that stands twice")
        for problem in problems:
            print(f"{fault['room']}.ini, {fault['name']}: {problem}")
        failures += len(problems)
    print(f"{len(faults)} faults, {failures} problems")
    return failures == 0


def shell(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


class Copy:
    """The copied tree and its build."""

    def __init__(self, work, jobs):
        self.tree = os.path.join(work, "tree")
        self.build = os.path.join(work, "build")
        self.results_path = os.path.join(work, "results.json")
        self.jobs = jobs
        os.makedirs(self.tree, exist_ok=True)
        self.results = {}
        if os.path.isfile(self.results_path):
            with open(self.results_path, encoding="utf-8") as file:
                self.results = json.load(file)

    def save(self):
        with open(self.results_path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.results, file, indent=1)
        os.replace(self.results_path + ".new", self.results_path)

    def put(self, name, data):
        """Writes a file only where it changes, so that as little as possible is built again."""
        path = os.path.join(self.tree, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                if file.read() == data:
                    return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)

    def synchronise(self):
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=SOURCE,
                                stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
        names = {n for n in listed if n and os.path.isfile(os.path.join(SOURCE, n))}
        for folder, _, files in os.walk(self.tree):
            for name in files:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.tree) not in names:
                    os.remove(path)
        for name in names:
            path = os.path.join(SOURCE, name)
            with open(path, "rb") as file:
                self.put(name, file.read())
            os.chmod(os.path.join(self.tree, name), os.stat(path).st_mode)

    def configure(self):
        done = shell(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja",
                      "-DMINIDIRAC_CUDA=OFF", "-DCMAKE_BUILD_TYPE=Release",
                      "-DCMAKE_C_FLAGS_RELEASE=-O2 -fno-math-errno -fno-trapping-math",
                      f"-DMINIDIRAC_TEST_TIMEOUT={TEST_TIMEOUT_S}",
                      f"-DMINIDIRAC_SHARED_LATTICES={self.build}/nowhere"])
        if done.returncode != 0:
            sys.exit(done.stdout)

    def tests_of(self, pattern):
        """Names of the tests, and the programs of this build that they run."""
        told = shell(["ctest", "--test-dir", self.build, "-R", pattern, "--show-only=json-v1"])
        start = told.stdout.find("{")
        tests = json.loads(told.stdout[start:])["tests"] if start >= 0 else []
        programs = {os.path.relpath(word, self.build) for t in tests for word in t.get("command", [])
                    if word.startswith(self.build + os.sep) and not os.path.isdir(word)}
        # ctest does not tell the command of a test whose program is not built yet.
        programs |= {"test_" + t["name"] for t in tests if "command" not in t}
        return [t["name"] for t in tests], sorted(programs)

    def compile(self, programs):
        return shell(["ninja", "-C", self.build, f"-j{self.jobs}", *programs])

    def run(self, pattern):
        """The first test that fails, or None."""
        done = shell(["ctest", "--test-dir", self.build, "-R", pattern, "--stop-on-failure"])
        if "Not Run" in done.stdout or "No tests were found" in done.stdout:
            sys.exit(f"the tests '{pattern}' do not run:\n{done.stdout}")
        failed = re.findall(r"^\s*\d+ - (\S+) \((.*?)\)", done.stdout, re.MULTILINE)
        failed = [(name, how) for name, how in failed if how != "Skipped"]
        if (done.returncode == 0) != (not failed):
            sys.exit(f"ctest says neither yes nor no:\n{done.stdout}")
        return failed[0] if failed else None


def key_of(fault):
    """Of what a result depends on: the entry and the file that it changes."""
    with open(os.path.join(SOURCE, fault["file"]), "rb") as file:
        text = file.read()
    told = json.dumps([fault[k] for k in sorted(KEYS)]).encode()
    return hashlib.sha256(told + text).hexdigest()


def sound(copy, faults):
    """Every test that is to find a fault passes without one."""
    patterns = {f["test"] for f in faults}
    names, programs = set(), set()
    for pattern in patterns:
        tests, needs = copy.tests_of(pattern)
        if not tests:
            sys.exit(f"no test has a name like '{pattern}'")
        names |= set(tests)
        programs |= set(needs)
    built = copy.compile(sorted(programs))
    if built.returncode != 0:
        sys.exit(built.stdout[-4000:])
    failed = copy.run("^(" + "|".join(re.escape(n) for n in sorted(names)) + ")$")
    if failed:
        sys.exit(f"{failed[0]} fails without any fault ({failed[1]})")
    print(f"{len(names)} tests pass without a fault", flush=True)


def attempt(copy, fault):
    """The result of one fault: found by which test, or survived."""
    with open(os.path.join(SOURCE, fault["file"]), "rb") as file:
        original = file.read()
    start = time.monotonic()
    copy.put(fault["file"], original.replace(fault["old"].encode(), fault["new"].encode()))
    try:
        built = copy.compile(copy.tests_of(fault["test"])[1])
        if built.returncode != 0:
            return {"verdict": "does not compile", "log": built.stdout[-2000:]}
        failed = copy.run(fault["test"])
    finally:
        copy.put(fault["file"], original)
    seconds = round(time.monotonic() - start, 1)
    if not failed:
        return {"verdict": "survived", "seconds": seconds}
    return {"verdict": "found", "by": failed[0], "how": failed[1], "seconds": seconds}


def try_all(copy, faults, again, baseline):
    for fault in faults:
        problems = problems_of(fault, SOURCE)
        if problems:
            sys.exit(f"{fault['name']}: {'; '.join(problems)}")
    left = [f for f in faults if again or copy.results.get(f["name"], {}).get("verdict") != "found"
            or copy.results[f["name"]]["key"] != key_of(f)]
    print(f"{len(faults)} faults, {len(left)} to try", flush=True)
    if left:
        copy.synchronise()
        copy.configure()
        if baseline:
            sound(copy, left)
    for fault in left:
        result = attempt(copy, fault)
        result["key"] = key_of(fault)
        copy.results[fault["name"]] = result
        copy.save()
        print(f"{fault['name']:<36} {result['verdict']:<16} {result.get('by', ''):<28} "
              f"{result.get('seconds', 0):6.1f} s", flush=True)
        print(result.get("log", ""), end="", flush=True)
    survived = [f["name"] for f in faults if copy.results[f["name"]]["verdict"] != "found"]
    print(f"{len(faults) - len(survived)} of {len(faults)} found", *survived)
    return not survived


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="words of the names to try")
    parser.add_argument("--check", action="store_true", help="only check that the entries fit the tree")
    parser.add_argument("--again", action="store_true", help="try also what was found before")
    parser.add_argument("--no-baseline", action="store_true",
                        help="spare the run of all tests without a fault, which has passed before")
    parser.add_argument("--work", default=os.path.join(SOURCE, "build", "mutations"),
                        help="folder for the copy and its build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once")
    arguments = parser.parse_args()
    faults = read_faults()
    if arguments.check:
        return check(faults)
    copy = Copy(os.path.abspath(arguments.work), arguments.jobs)
    wanted = [f for f in faults if not arguments.names
              or any(word in f["name"] or word == f["room"] for word in arguments.names)]
    return try_all(copy, wanted, arguments.again, not arguments.no_baseline)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
