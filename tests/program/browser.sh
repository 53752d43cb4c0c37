#!/usr/bin/env bash
# The page of scripts/report.py in a browser, on a phone and on a desk, on light and on dark paper: browser.py and
# browser.js say what a reader would find amiss. With PICTURES=PREFIX in the environment the four views are kept.
. "$(dirname "$0")/common.sh"
count=0
command -v python3 >/dev/null || exit 77
chromium=
for name in chromium chromium-browser google-chrome; do
  "$name" --version >/dev/null 2>&1 && chromium=$(command -v $name) && break
done
[ -n "$chromium" ] || exit 77
cd "$work" || exit 1
lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
run() { on 1 "$@" --quiet || complain "'$*': exit $?"; }
run generate --dims 4x4x4x8 --beta 5.7 --sweeps 8 --seed 1 --save-every 2 -o chain.h5 --json generate.json
run measure --lattices 'chain.0*.h5' --masses 0.1,0.3 --actions naive,hisq --sources seeded:2,1 --momenta '0,0,0;1,0,0' \
  --output study.h5 --json study.json
for mass in 0.1 0.2 0.4; do run solve --lattice "$lattice" --mass $mass --source point:0,0,0,3 --json solve$mass.json; done
on 1 solve --lattice "$lattice" --mass 0.5 --max-iter 2 --quiet --json missed.json 2>/dev/null
run validate --lattice "$lattice" --backend cpu_simd --precision half --json validate.json
run eigen --lattice "$lattice" --modes 4 --json eigen.json
run bench dirac --dims 4x4x4x4 --backends cpu_ref,cpu_simd --precisions double,single --rhs 1,2 --repetitions 1 --json dirac.json
run bench gemm --shapes 32x32x32,48x48x48 --kernels naive,openblas --json gemm.json
on 1 bench suite --class XS --parts copy,hop,gemm --repetitions 1 --quiet --json suite.json || complain "bench suite: exit $?"

"$source_dir/scripts/report.py" solve*.json missed.json study.json validate.json eigen.json generate.json dirac.json gemm.json suite.json \
  "$source_dir/results/xeon-icelake-2-cores.json" "$source_dir/bench/h200/suite/suite-M-naive.json" -o page.html &&
  "$source_dir/scripts/report.py" solve0.1.json dirac.json suite.json -o few.html || complain "report.py: exit $?"
# The least speed and error stand just above ticks, whose words then are neighbours in the corner of the axes.
python3 - <<'END'
import json
report = json.load(open("dirac.json"))
rows = [row for row in report["rows"] if row["error"] > 0]
for key, least in (("gflops", 1.195), ("error", 2.2e-16)):
    factor = least / min(row[key] for row in rows)
    for row in rows:
        row[key] *= factor
json.dump(report, open("corner.json", "w"))
END
"$source_dir/scripts/report.py" corner.json -o corner.html || complain "report.py corner.json: exit $?"
# Of pages that are not as they should be it is seen what.
cat >spoilt <<'END'
s/--soft:#a9b0b8/--soft:#444/|dark: .* has a contrast
s/[.]wide{overflow:auto}//|390 .*: the page is
s/class="number" x="[0-9.]*"/class="number" x="200"/g|lies on
s/<desc>[^<]*//g|no desc of
s/--s1:#0072b2/--s1:#e0f0ff/|light: a point of
END
while IFS='|' read -r pattern what; do
  count=$((count + 1))
  sed "$pattern" few.html >spoilt$count.html
done <spoilt
timeout 250 python3 "$source_dir/tests/program/browser.py" "$chromium" page.html few.html corner.html spoilt*.html >seen 2>err
[ $? = 1 ] && [ ! -s err ] || complain "browser.py: $(cat err)"
for view in "390 light" "390 dark" "1280 light" "1280 dark"; do
  grep -qx "page.html $view: 40 figures, 0 amiss" seen || complain "the page of 13 reports: $(grep "^page.html $view" seen)"
  grep -qx "corner.html $view: 2 figures, 0 amiss" seen || complain "words in a corner: $(grep "^corner.html $view" seen)"
  grep -qx "few.html $view: 9 figures, 0 amiss" seen || complain "the page of three: $(grep "^few.html $view" seen)"
done
count=0
while IFS='|' read -r pattern what; do
  count=$((count + 1))
  grep -q "^spoilt$count.html .*$what" seen || complain "$pattern: no '$what' in $(grep "^spoilt$count" seen)"
done <spoilt
finish
