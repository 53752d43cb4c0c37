#!/usr/bin/env bash
# The build steps of scripts/packaging/Containerfile without a container: its RUN lines that build and
# install, in a folder of their own instead of /source, /build and /usr/local, and the program that
# they install. What is built is not optimised, as the steps are looked at and not the program.
#
#   scripts/packaging/container_steps.sh
set -euo pipefail
if [ "${1:-}" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit 0
fi
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Continued lines become one; of the RUN lines those with cmake.
steps=$(sed -e ':again' -e '/\\$/{N;s/\\\n//;b again' -e '}' "$source_dir/scripts/packaging/Containerfile" |
  sed -n 's/^RUN \(.*cmake -S .*\)$/\1/p')
[ -n "$steps" ] || { echo "container_steps.sh: the Containerfile has no RUN line with cmake -S" && exit 1; }
steps=$(sed -e "s|/source|$source_dir|g; s|/build|$work/build|g; s|/usr/local|$work/prefix|g" <<<"$steps")
CMAKE_BUILD_TYPE=None CFLAGS=-O0 CXXFLAGS=-O0 CUDA=OFF ARCHITECTURES=90 bash -euo pipefail -c "$steps"
"$work/prefix/bin/minidirac" info "$source_dir/inputs/beta5.7_4x4x4x8.lime" --quiet
echo "container_steps.sh: in order"
