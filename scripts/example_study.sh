#!/usr/bin/env bash
# From nothing to a picture of the pion's mass: twelve quenched lattices of one chain, a study of two
# quark masses, plots.
#
# usage: example_study.sh PATH-TO-minidirac [FOLDER]      needs python3 with numpy, h5py, matplotlib
set -eu
if [ $# -lt 1 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  [ "${1:-}" = --help ] && exit 0 || exit 2
fi
minidirac=$(realpath "$1")
scripts=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${2:-study}"
cd "${2:-study}"

# Each lattice begins where the last one ended, ten sweeps and another seed later.
cp "$scripts/../inputs/beta5.7_4x4x4x8.lime" chain0.lime
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
  "$minidirac" generate --from chain$((i - 1)).lime --beta 5.7 --sweeps 10 --seed "$i" -o chain$i.lime --quiet --force
done

cat >study.ini <<'END'
[measure]
lattices = chain[1-9]*.lime
masses = 0.1,0.2
sources = seeded:2,1 u1:1
vectors = 6
bin = 2
output = study.h5
END
"$minidirac" measure --config study.ini --force --json study.json
"$scripts/plot_study.py" study.h5 --bin 2 -o study
ls study.json study.h5 study-*.png
