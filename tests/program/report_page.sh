#!/usr/bin/env bash
# scripts/report.py: the page is well-formed, asks for nothing outside, holds every row and a mark
# for each that has the numbers; bad input is one line and costs no page.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || exit 77
here=$source_dir/scripts
cd "$work" || exit 1

on 1 bench dirac --dims 4x4x4x4 --backends cpu_ref,cpu_simd --precisions double,single --rhs 1,2 --repetitions 1 --quiet \
  --json dirac.json || complain "bench dirac: exit $?"
on 1 bench solver --dims 4x4x4x4 --mass 0.5 --operators cpu_simd --inner none,single --repetitions 2 --tol 1e-8 --quiet \
  --json solver.json || complain "bench solver: exit $?"
on 1 solve --lattice "$source_dir/inputs/beta5.7_4x4x4x8.lime" --mass 0.5 --max-iter 2 --quiet --json missed.json 2>err
[ $? = 1 ] || complain "a solve of two iterations: $(cat err)"
# A report of before the machine was named, with texts that are no friends of HTML and odd numbers.
cat >old.json <<'END'
{"command": "bench dirac", "commit": "<b>&\u0000\ud800\"'", "rows": [
  {"backend": "<script>alert(1)</script>", "precision": "]]>", "gflops": 5, "gbytes_per_s": 1000, "error": 0, "roofline_fraction": null},
  {"backend": "x", "precision": "single", "gflops": null, "gbytes_per_s": 1000, "error": 1e-7, "none": [1, "<i>"]},
  {"backend": "x", "precision": "single", "gflops": 1e300, "gbytes_per_s": true, "error": 1e-300, "roofline_fraction": 1e-9},
  {"backend": "x", "precision": "single", "gflops": 1.7e308, "gbytes_per_s": 9, "error": 5e-324, "roofline_fraction": 1e-9}]}
END
g='"kernel": "k1", "relative_bound": 1e-6, "relative_error"'
echo "{\"command\": \"bench gemm\", \"rows\": [{$g: 1e-7}, {$g: null}]}" >unchecked.json
echo "{\"command\": \"bench gemm\", \"rows\": [{$g: 1e-7}]}" >checked.json
echo "{\"command\": \"bench gemm\", \"rows\": [{$g: 1e-5}]}" >broken.json
e='"kernel": "k1", "relative_bound": 1e-6, "relative_error": 1e-7, "excess"'
echo "{\"command\": \"bench gemm\", \"rows\": [{$e: 0.9, \"checked\": \"rows\"}]}" >elements.json
echo "{\"command\": \"bench gemm\", \"rows\": [{$e: 1.1, \"checked\": \"all\"}]}" >element.json
echo "{\"command\": \"bench gemm\", \"rows\": [{$e: null, \"checked\": \"all\"}]}" >nothing.json
echo "{\"command\": \"bench gemm\", \"rows\": [{$e: null, \"checked\": \"off\"}]}" >off.json

# holds REPORT...: the page of them.
holds() {
  "$here/report.py" "$@" -o page.html >out 2>err || complain "report.py $*: $(tail -1 err)"
  python3 - page.html "$@" <<'END' || complain "the page of $*"
import json, re, sys
import xml.etree.ElementTree as tree
text = open(sys.argv[1], encoding="utf-8").read()
root = tree.fromstring(text.split("\n", 1)[1])
name = lambda element: element.tag.split("}")[1]
reports = [json.load(open(report)) for report in sys.argv[2:]]
rows = [row for report in reports for row in report.get("rows", [])]
lines = [e for e in root.iter() if e.get("class") == "row"]
assert len(lines) == len(rows), (len(lines), len(rows))
for line, row in zip(lines, rows):
    cells = ["".join(cell.itertext()) for cell in line]
    for key in ("backend", "solver", "precision"):
        assert key not in row or row[key] in cells, (row, cells)
number = lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and v > 0
marks = [r for report in reports if report["command"] == "bench dirac" for r in report["rows"] if number(r["gflops"])]
marks += [r for report in reports if report["command"] == "bench suite" for r in report["rows"] if r["part"] == "hop"]
gemm = [r for report in reports if report["command"] == "bench suite" for r in report["rows"] if r["part"] == "gemm"]
marks = sum(number(r.get("gbytes_per_s")) for r in marks) + sum(number(r["error"]) for r in marks) + len(gemm)
drawn = [e for e in root.iter() if "mark" in e.get("class", "").split()]
assert len(drawn) == marks, (len(drawn), marks)
solves = [r["rows"] if r["command"] == "bench solver" else [r] for r in reports if r["command"] in ("solve", "bench solver")]
solves += [[r for r in report["rows"] if r["part"][:2] == "cg"] for report in reports if report["command"] == "bench suite"]
bars = sum(name(e) == "rect" and e.get("height") == "10" for e in root.iter())
assert bars == sum(map(len, solves)) + len(gemm), (bars, solves)
missed = sum(any(not row["converged"] for row in lines) for lines in solves)
assert sum(e.get("class") == "FAIL" for e in root.iter()) == missed, missed
assert sum("expected" in "".join(e.itertext()) for e in root.iter() if name(e) == "table") == sum("checks" in r for r in reports)
for e in root.iter():  # every mark lies in its picture
    at = re.match(r"translate\(([-.0-9]+) ([-.0-9]+)\)(?! rotate)", e.get("transform", ""))
    assert not at or (50 <= float(at[1]) <= 350 and 10 <= float(at[2]) <= 260), e.get("transform")
pictures = [(e.find("{*}div/{*}svg/{*}title"), e) for e in root.iter() if name(e) == "figure"]
of = lambda title, kind: sum(kind in m.get("class", "").split() for t, e in pictures if t is not None and t.text == title for m in e.iter())
drawn, told = of("Pion correlators", "dot"), [c for r in reports if r["command"] == "solve" for c in r["pion_correlator"] if c > 0]
assert drawn == len(told), (drawn, told)
assert all(e.find("{*}div/{*}svg/{*}desc").text for t, e in pictures if t is not None)
assert any(e.get("name") == "viewport" for e in root.iter())
assert not {name(e) for e in root.iter()} & {"script", "link", "img", "iframe", "object", "i"}
outside = [a for e in root.iter() for a in e.attrib if a in ("src", "href") or a.startswith("on")]
assert not outside and "url(" not in text and "@import" not in text, outside
assert set(re.findall("https?://[^'\"]*", text)) <= {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}
END
}
on 1 bench suite --class XS --parts hop,cg1,gemm --inner none --repetitions 1 --quiet --json suite.json || complain "bench suite: exit $?"
holds dirac.json
holds suite.json
holds suite.json dirac.json solver.json
grep -q "<b class='PASS'>PASS</b> class XS" page.html || complain "no verdict of the suite"
grep -q "<td class='n'>0.59347680622</td><td class='n'>0.59347680622</td>" page.html || complain "a check without the digits of its tolerance"
[ "$(grep -o 'class="number"[^>]*>[a-z]* GEMM' page.html | sed 's/.*>//' | sort -u | paste -sd,)" = "double GEMM,single GEMM" ] ||
  complain "no ceilings: $(grep -o '>[a-z]* GEMM' page.html)"
holds dirac.json solver.json missed.json
holds dirac.json old.json
holds old.json
grep -q '<b class' page.html && complain "a verdict for a stencil that is not judged"
holds missed.json
grep -q "<b class='FAIL'>FAIL</b> 1 of 1 solves missed" page.html || complain "no FAIL"

for case in "unchecked 0 0" "checked 1 0" "broken 0 1" "elements 1 0" "element 0 1" "nothing 0 1" "off 0 0"; do
  set -- $case
  "$here/report.py" "$1.json" -o page.html || complain "$1: exit $?"
  [ "$(grep -c '>PASS</b>' page.html) $(grep -c '>FAIL</b>' page.html)" = "$2 $3" ] || complain "verdict of $1.json"
done

# bad WORDS ARGUMENTS...: exit 2, one line, the page as it was.
bad() {
  cp page.html kept.html
  "$here/report.py" "${@:2}" >out 2>err
  [ $? = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -q "^report.py: error: .*$1" err || complain "${*:2}: $(cat err)"
  cmp -s page.html kept.html || complain "${*:2} changed the page"
}
cp dirac.json kept.json
echo '{"command": "bench dirac", "rows": 3}' >rows.json
bad 'No such file' none.json -o page.html
bad 'no list of rows' dirac.json rows.json -o page.html
bad 'is one of the reports' dirac.json -o dirac.json
bad 'cannot be written' dirac.json -o none/page.html
bad 'required: -o' dirac.json
cmp -s dirac.json kept.json || complain "the report was overwritten"
[ -z "$(find . -name '*.partial')" ] || complain "a partial page is left"
finish
