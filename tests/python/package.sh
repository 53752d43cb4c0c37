#!/usr/bin/env bash
# The tests of the package by unittest, ranks.py and communicators.py on two ranks. $3 is the shared library.
# With a fourth argument, gpu: gpu_check.py alone; types: mypy alone.
. "$(dirname "$0")/../program/common.sh"
if [ "${4-}" = types ]; then
  python_with numpy mypy || exit 77
else
  python_with numpy h5py matplotlib || python_with numpy || exit 77
fi
export MINIDIRAC=$minidirac MINIDIRAC_INPUTS=$source_dir/inputs MINIDIRAC_LIBRARY=$3 PYTHONPATH=$source_dir/python
export PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=$work
cd "$work" || exit 1
case ${4-} in
gpu)
  timeout 200 python3 "$source_dir/tests/python/gpu_check.py"
  exit
  ;;
types)
  python3 -m mypy --config-file "$source_dir/pyproject.toml" --cache-dir "$work" "$source_dir/python/minidirac"
  exit
  ;;
esac
[ -f "${MINIDIRAC_SHARED_LATTICES:-}/lat.sample.l4448" ] || left_out lattices_of_another_code
timeout 200 python3 -m unittest discover -s "$source_dir/tests/python" >out 2>&1 || complain "unittest: $(cat out)"
grep -q '^Ran [1-9]' out || complain "no tests: $(cat out)"
[ "$(grep -c . out)" -le 4 ] || complain "more than the summary: $(cat out)"
timeout 60 mpirun -n 2 python3 "$source_dir/tests/python/ranks.py" >out 2>&1 || complain "two ranks: $(cat out)"
for order in first second; do
  python3 -c 'import mpi4py' 2>/dev/null || { left_out communicators && break; }
  timeout 60 mpirun -n 2 python3 "$source_dir/tests/python/communicators.py" $order >out 2>&1 || complain "mpi4py $order: $(cat out)"
done
finish
