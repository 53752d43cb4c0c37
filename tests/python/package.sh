#!/usr/bin/env bash
# The tests of the package by unittest, and ranks.py on two ranks. $3 is the shared library.
. "$(dirname "$0")/../program/common.sh"
python_with numpy h5py || python_with numpy || exit 77
export MINIDIRAC=$minidirac MINIDIRAC_INPUTS=$source_dir/inputs MINIDIRAC_LIBRARY=$3 PYTHONPATH=$source_dir/python
export PYTHONDONTWRITEBYTECODE=1
cd "$work" || exit 1
timeout 200 python3 -m unittest discover -s "$source_dir/tests/python" >out 2>&1 || complain "unittest: $(cat out)"
grep -q '^Ran [1-9]' out || complain "no tests: $(cat out)"
[ "$(grep -c . out)" -le 4 ] || complain "more than the summary: $(cat out)"
timeout 60 mpirun -n 2 python3 "$source_dir/tests/python/ranks.py" >out 2>&1 || complain "two ranks: $(cat out)"
finish
