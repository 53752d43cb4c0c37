#!/usr/bin/env bash
# install.sh BUILD: installs the build into a fresh prefix; a program outside the tree builds
# against it by pkg-config and by the CMake package, and the installed minidirac runs.
set -euo pipefail
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
"$work/prefix/bin/minidirac" --version

cat > "$work/user.c" <<'C'
#include "dirac/solvers/solver.h"
#include <stdio.h>
int main(int argc, char **argv) {
  md_context context;
  md_geometry *geometry;
  const md_layout_request request = {.global = {4, 4, 4, 4}};
  if (md_context_open(&context, &argc, &argv) != MD_OK) return 1;
  const md_status status = md_geometry_create(&context, &request, &geometry);
  printf("%lld sites, %d backends or more\n", (long long)geometry->volume, md_backends()[1] ? 2 : 1);
  md_geometry_destroy(geometry);
  md_context_close(&context);
  return status;
}
C
libdir=$(dirname "$(find "$work/prefix" -name libminidirac.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig
cc -o "$work/user" "$work/user.c" $(pkg-config --cflags --libs minidirac)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$work/user"
cat > "$work/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(minidirac REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE minidirac::minidirac)
C
cmake -S "$work" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
"$work/build/user"
