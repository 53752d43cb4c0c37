#!/usr/bin/env bash
# install.sh BUILD [SOURCE]: installs the build into a fresh prefix. The public headers are those of
# the umbrella, each of which stands alone in C and C++; the example builds against the prefix by
# pkg-config and by the CMake package, as C and as C++, and with SOURCE also as a project that takes
# miniDirac in by add_subdirectory; all give the correlator that the installed program gives.
set -euo pipefail
build=$(cd "$1" && pwd)
example=$(cd "$(dirname "$0")/../../docs/example" && pwd)
inputs=$(cd "$(dirname "$0")/../../inputs" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=2
fail() { echo "install: $*" && exit 1; }

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix" # the tree can be moved
prefix=$work/prefix
libdir=$(dirname "$(find "$prefix" -name libminidirac.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig
"$prefix/bin/minidirac" --version

# Installed headers = closure of the umbrella; no header of others but the C library's.
installed=$(cd "$prefix/include" && find . -name '*.h' | sort)
closure=$(cd "$prefix/include" && echo '#include <minidirac/minidirac.h>' | cc -I. -MM -xc - |
  tr ' ' '\n' | sed -n 's|^\(\./\)\{0,1\}minidirac/|./minidirac/|p' | sort)
[ "$installed" = "$closure" ] || fail "headers: $(diff <(echo "$installed") <(echo "$closure"))"
! grep -rnE '#include <(mpi|hdf5|cuda|omp|cJSON)' "$prefix/include" || fail "a header of another library"
! grep -rn MD_PARTIAL_SUMS "$prefix/include" || fail "block sizes in a public header"
for header in $installed; do
  echo "#include <${header#./}>" > "$work/alone.c"
  cc -std=c17 -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only "$work/alone.c"
  c++ -std=c++17 -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only -xc++ "$work/alone.c"
done

# A program that needs more of the library than the example: the dense kernels, which name CUDA's.
cat > "$work/dense.c" <<'C'
#include <minidirac/minidirac.h>
#include <stdio.h>
int main(int argc, char **argv) {
  md_context context;
  if (md_context_open(&context, &argc, &argv) != MD_OK) return 3;
  const double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
  double c[4];
  const md_gemm_problem problem = {2, 2, 2, MD_GEMM_DOUBLE, 2, 2, 2, 1.0, 0.0};
  const md_gemm_launch launch = {0, 1, NULL};
  const md_gemm_kernel *kernel;
  int variant;
  md_status status = md_gemm_find(&context, "cpu_tiled", &kernel, &variant);
  if (status == MD_OK) status = md_gemm(&context, kernel, &problem, &launch, a, b, c);
  printf("%g %g %g %g\n", c[0], c[1], c[2], c[3]);
  md_context_close(&context);
  return (int)status;
}
C
cp "$work/dense.c" "$work/dense.cpp"
flags=$(pkg-config --cflags --libs minidirac)
cc -Wall -Werror -o "$work/dense" "$work/dense.c" $flags
c++ -Wall -Werror -o "$work/dense_cxx" "$work/dense.cpp" $flags
for program in dense dense_cxx; do
  [ "$("$work/$program")" = "19 22 43 50" ] || fail "$program gives $("$work/$program")"
done

cc -Wall -Werror -o "$work/pion" "$example/pion.c" $flags
cp "$example/pion.c" "$work/pion.cpp"
c++ -std=c++17 -Wall -Werror -o "$work/pion_cxx" "$work/pion.cpp" $flags
cmake -S "$example" -B "$work/package" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/package" >/dev/null
programs="$work/pion $work/pion_cxx $work/package/pion $work/package/pion_cxx"
if [ $# -gt 1 ]; then
  cmake -S "$example" -B "$work/part" -G Ninja -DMINIDIRAC_SOURCE="$(cd "$2" && pwd)" \
    -DMINIDIRAC_CUDA=OFF -DCMAKE_BUILD_TYPE=Debug >/dev/null
  [ -z "$(sed -n 's/^\(BUILD_TESTING\|CTEST_[A-Z_]*\):.*/\1/p' "$work/part/CMakeCache.txt")" ] ||
    fail "add_subdirectory sets options of the project around it"
  cmake --build "$work/part" >/dev/null
  [ ! -e "$work/part/minidirac/src/minidirac" ] || fail "add_subdirectory builds what was not asked for"
  programs="$programs $work/part/pion $work/part/pion_cxx"
fi

lattice=$inputs/beta5.7_4x4x4x8.lime
"$prefix/bin/minidirac" solve --lattice "$lattice" --mass 0.1 --source point:0,0,0,0 --tol 1e-10 \
  --backend cpu_ref --quiet --json - > "$work/report.json"
for program in $programs; do
  "$program" "$lattice" 0.1 > "$work/correlator"
  python3 - "$work/report.json" "$work/correlator" <<'P' || fail "$program gives another correlator"
import json, sys
want = json.load(open(sys.argv[1]))["pion_correlator"]
got = [float(line.split()[1]) for line in open(sys.argv[2])]
sys.exit(not (len(got) == len(want) > 0 and all(abs(g / w - 1) < 1e-8 for g, w in zip(got, want))))
P
done
"$work/pion" /dev/null 0.1 2> "$work/message" && fail "no failure for a file that is no lattice"
grep -q . "$work/message" || fail "a failure without a message"
echo "install: in order"
