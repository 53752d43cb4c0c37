#!/usr/bin/env bash
# install.sh BUILD [SOURCE]: installs the build into a fresh prefix, with its reference, pages, inputs and Python
# readers, which find the library there. The public headers stand alone in C and C++, and the shared library exports the functions of minidirac.h and nothing else; the example
# builds against the prefix by pkg-config and by the CMake package, shared and static, as C and as C++,
# and with SOURCE also as a project that takes miniDirac in by add_subdirectory; all give the
# correlator that the installed program gives.
set -euo pipefail
build=$(cd "$1" && pwd)
example=$(cd "$(dirname "$0")/../../docs/example" && pwd)
inputs=$(cd "$(dirname "$0")/../../inputs" && pwd)
. "$(dirname "$0")/common.sh" "" ""
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
fail() { echo "install: $*" && exit 1; }

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix" # the tree can be moved
prefix=$work/prefix
libdir=$(dirname "$(find "$prefix" -name libminidirac.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig
"$prefix/bin/minidirac" --version

for file in man/man1/minidirac.1 bash-completion/completions/minidirac doc/minidirac/tutorial.md doc/minidirac/example/study.c \
  minidirac/inputs/beta6.0_8x8x8x8.h5 minidirac/cluster/cpu.slurm minidirac/scripts/plotting.py; do
  [ -s "$prefix/share/$file" ] || fail "no share/$file"
done
python_with numpy h5py matplotlib || fail "no python3 with numpy, h5py and matplotlib"
for reader in "$prefix"/share/minidirac/scripts/*.py; do
  python3 "$reader" --help >/dev/null || fail "$reader --help"
done
[ "$(PYTHONPATH=$prefix/share/minidirac/python python3 -c 'import sys, minidirac as md
print(f"{md.load(sys.argv[1]).plaquette:.12f}", md.library.find().startswith(sys.argv[2]))' \
  "$inputs/beta5.7_4x4x4x8.lime" "$prefix")" = "0.571834509795 True" ] || fail "the Python package with the library of the prefix"

# Two headers, which include MPI's and those of the C library.
[ "$(cd "$prefix/include" && find . -type f | sort | tr '\n' ' ')" = \
  "./minidirac/minidirac.h ./minidirac/status.h " ] || fail "headers: $(find "$prefix/include" -type f)"
! grep -rnE '#include' "$prefix/include" | grep -vE '<(mpi|stdbool|stddef|stdint|minidirac/status)\.h>' ||
  fail "a header of another library"
shared=$(pkg-config --cflags --libs minidirac) static=$(pkg-config --cflags --libs minidirac-static)
for header in minidirac status; do
  echo "#include <minidirac/$header.h>" > "$work/alone.c"
  cc -std=c17 -Wall -Wextra -Werror -fsyntax-only "$work/alone.c" $(pkg-config --cflags minidirac)
  c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -xc++ "$work/alone.c" $(pkg-config --cflags minidirac)
done

# What is declared is what is exported.
cc -fpreprocessed -dD -E -P "$prefix/include/minidirac/minidirac.h" | grep -oE '\bmd_[a-z0-9_]+\(' |
  tr -d '(' | sort -u > "$work/declared"
nm -D --defined-only "$libdir/libminidirac.so" | awk '{print $NF}' | sort -u > "$work/exported"
diff "$work/declared" "$work/exported" || fail "the shared library exports other names than the header declares"
[ "$(readelf -d "$libdir/libminidirac.so" | grep -c 'SONAME.*\[libminidirac\.so\.0\]')" = 1 ] || fail "soname"

cp "$example/study.c" "$work/study.cpp"
cc -std=c17 -Wall -Werror -o "$work/study" "$example/study.c" $shared
c++ -std=c++17 -Wall -Werror -o "$work/study_cxx" "$work/study.cpp" $static
[[ $(ldd "$work/study") == *"libminidirac.so.0 => $work"* ]] || fail "pkg-config minidirac links no shared library"
[[ $(ldd "$work/study_cxx") != *libminidirac* ]] || fail "pkg-config minidirac-static links the shared library"
cmake -S "$example" -B "$work/package" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/package" >/dev/null
programs="$work/study $work/study_cxx $work/package/study $work/package/study_cxx"
if [ $# -gt 1 ]; then
  cmake -S "$2" -B "$work/word" -G Ninja -DMINIDIRAC_CUDA=maybe >/dev/null 2> "$work/message" && fail "MINIDIRAC_CUDA takes any word"
  grep -q "must be AUTO, ON or OFF, got 'maybe'" "$work/message" || fail "MINIDIRAC_CUDA=maybe: $(head -3 "$work/message")"
  cmake -S "$example" -B "$work/part" -G Ninja -DMINIDIRAC_SOURCE="$(cd "$2" && pwd)" \
    -DMINIDIRAC_CUDA=OFF -DCMAKE_BUILD_TYPE=Debug >/dev/null
  [ -z "$(sed -n 's/^\(BUILD_TESTING\|CTEST_[A-Z_]*\):.*/\1/p' "$work/part/CMakeCache.txt")" ] ||
    fail "add_subdirectory sets options of the project around it"
  cmake --build "$work/part" >/dev/null
  [ ! -e "$work/part/minidirac/src/minidirac" ] || fail "add_subdirectory builds what was not asked for"
  programs="$programs $work/part/study $work/part/study_cxx"
fi

lattice=$inputs/beta5.7_4x4x4x8.lime
"$prefix/bin/minidirac" solve --lattice "$lattice" --action hisq --mass 0.1 --source point:0,0,0,0 --tol 1e-10 \
  --backend cpu_ref --quiet --json - > "$work/report.json"
for program in $programs; do
  "$program" "$lattice" 0.1 4 > "$work/correlator" 2> "$work/message" || fail "$program: $(cat "$work/message")"
  python3 - "$work/report.json" "$work/correlator" <<'P' || fail "$program gives another correlator"
import json, sys
want = json.load(open(sys.argv[1]))["pion_correlator"]
got = [float(line.split()[1]) for line in open(sys.argv[2])]
sys.exit(not (len(got) == len(want) > 0 and all(abs(g / w - 1) < 1e-8 for g, w in zip(got, want))))
P
done
"$work/study" /dev/null 0.1 2> "$work/message" && fail "no failure for a file that is no lattice"
grep -q . "$work/message" || fail "a failure without a message"
echo "install: in order"
