#!/usr/bin/env bash
# Set-up and first run on Debian 12 or Ubuntu 24.04, as root or with sudo:
#
#   scripts/setup.sh [CMAKE OPTIONS]
#
# installs the Debian packages, configures, builds the program in build/, and solves the Dirac
# equation on a lattice of inputs/. CUDA is used when nvcc is on PATH. The tests are built when
# tests/ctest.sh runs them.
set -euo pipefail
if [ "${1:-}" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit 0
fi
cd "$(dirname "$0")/.."

packages=(gcc g++ cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libhdf5-openmpi-dev
  librandom123-dev libcjson-dev libinih-dev libdeflate-dev zlib1g-dev libcmocka-dev libopenblas-dev python3
  python3-matplotlib python3-h5py)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

cmake -S . -B build -G Ninja "$@"
cmake --build build --target minidirac
build/src/minidirac solve --config inputs/solve_beta6.0.ini
