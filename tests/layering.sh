#!/usr/bin/env bash
# Includes run one way: src/base <- lattice <- dirac; src/base <- gemm; lattice <- io; src and
# tests may use all. Library headers stay in the few files that are theirs. No status is dropped.
set -u
cd "$1" || exit 1
bad=0
# forbid PATTERN FOLDER...: no file there may include what the pattern matches.
forbid() {
  local pattern=$1
  shift
  local rows
  rows=$(grep -rnE "^ *# *include *[<\"]($pattern)" --include='*.[ch]' --include='*.cu' --include='*.cuh' "$@")
  if [ -n "$rows" ]; then
    echo "layering: $* must not include $pattern:"
    echo "$rows"
    bad=1
  fi
}
# allow PATTERN REGEX: only files whose path matches REGEX may include what the pattern matches.
allow() {
  local rows
  rows=$(grep -rlE "^ *# *include *[<\"]($1)" --include='*.[ch]' --include='*.cu' --include='*.cuh' src lattice dirac gemm io | grep -vE "$2")
  if [ -n "$rows" ]; then
    echo "layering: $1 is included by files that may not: $rows"
    bad=1
  fi
}
forbid '(lattice|dirac|gemm|io)/' src/base
forbid '(dirac|gemm|io)/' lattice
forbid '(gemm|io)/' dirac
forbid '(lattice|dirac|io)/' gemm
forbid '(dirac|gemm)/' io
forbid 'commands\.h|tests/' src/base lattice dirac gemm io
allow 'mpi\.h|base/ranks_mpi\.h' '^(src/(base/(context\.c|report\.c|ranks_mpi\.h)|library/(context\.c|minidirac\.h)|bench/gemm/case\.c)|lattice/(halo/mpi|fields/sum)\.c|io/(payload|site_data)\.c|gemm/(distributed|scalapack|summa)\.c)$'
allow 'hdf5\.h' '^io/'
allow 'cuda[a-z_]*\.h|mma\.h' '\.(cu|cuh)$|^src/base/device'
forbid 'dirac/(cpu_ref|cpu_simd|cuda|tensor)/' dirac/solvers dirac/eigen dirac/links dirac/action.c dirac/action.h dirac/operator.c dirac/operator.h dirac/operators.c dirac/operators.h dirac/system.c dirac/system.h dirac/precondition dirac/backend.h
forbid 'lattice/(fields|gauge|halo)/' lattice/geometry
forbid 'lattice/(gauge|halo)/' lattice/fields
allow '[a-z]*intrin\.h' '^lattice/fields/lanes\.h'
# A process with MPI, threads and a GPU is never copied: posix_spawn alone starts others.
rows=$(grep -rnE '\<(v?fork|system|popen) *\(' --include='*.[ch]' --include='*.cu' --include='*.cuh' src lattice dirac gemm io)
if [ -n "$rows" ]; then
  echo "layering: a process is started by other means than posix_spawn: $rows"
  bad=1
fi
# Only main ends the process (and the program that reads files its own), and only these ask the environment:
# what decides collective steps must be the same on all ranks (md_wishes in src/base/context.h).
calls() { # calls PATTERN REGEX: only files whose path matches REGEX may call what the pattern matches.
  local rows
  rows=$(grep -rnE "(^|[^a-z_])($1) *\(" --include='*.[ch]' --include='*.cu' --include='*.cuh' src lattice dirac gemm io | grep -vE "$2")
  if [ -n "$rows" ]; then
    echo "layering: $1 is called by files that may not:"
    echo "$rows"
    bad=1
  fi
}
calls '_exit|exit|abort|MPI_Abort' '^(src|io/reader)/main\.c:'
calls '(secure_)?getenv' '^src/base/(context|message|options|waiting)\.c:'
# What returns a status is marked by its type (src/base/status.h): nothing that drops one compiles.
compiles() { # COMPILER LANGUAGE BODY
  printf '#include "base/status.h"\nmd_status f(void);\nvoid g(void);\nvoid g(void) { %s }\n' "$3" |
    "$1" -x "$2" -Wall -Werror -Isrc -fsyntax-only - 2>/dev/null
}
for compiler in cc c++ clang clang++; do
  command -v $compiler >/dev/null || continue
  language=c
  [[ $compiler = *++ ]] && language=c++
  if ! compiles $compiler $language '(void)f();' || compiles $compiler $language 'f();'; then
    echo "layering: $compiler lets a status be dropped"
    bad=1
  fi
done
[ $bad = 0 ] && echo "layering: in order"
exit $bad
