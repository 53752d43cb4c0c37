#!/usr/bin/env bash
# info and convert on bad input and bad disks: one clear line, exit code 2 or 3, on one and on
# four ranks, no hang, and no existing file is lost.
set -u
minidirac=$1
folder=$(mktemp -d)
mounted=
cleanup() {
  [ -n "$mounted" ] && umount "$folder/small"
  rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder" || exit 1
failures=0
limit=unlimited # of the size of a file that a rank writes, in KB
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# refuse CODE TEXT COMMAND...: on 1 and 4 ranks, exactly one error line, which has TEXT in it.
refuse() {
  local code=$1 text=$2 ranks got lines launch
  shift 2
  for ranks in 1 4; do
    [ $ranks = 1 ] && launch=() || launch=(mpiexec -n $ranks)
    timeout 60 "${launch[@]}" bash -c "ulimit -f $limit; exec \"\$0\" \"\$@\"" "$minidirac" \
      "$@" >out 2>err
    got=$?
    lines=$(grep -c '^minidirac: error: ' err)
    [ $got = "$code" ] || fail "$* on $ranks ranks: exit code $got, expected $code: $(cat err)"
    [ "$lines" = 1 ] || fail "$* on $ranks ranks: $lines error lines"
    grep '^minidirac: error: ' err | grep -qF -- "$text" ||
      fail "$* on $ranks ranks: no '$text' in: $(grep minidirac: err)"
  done
}

# nersc FILE X Y Z T [LINES]: a lattice of zeros (links far from SU(3), but finite), without
# checksum; the file is sparse.
nersc() {
  local links=$(($2 * $3 * $4 * $5 * 288))
  printf 'BEGIN_HEADER\nDATATYPE = 4D_SU3_GAUGE_3x3\nDIMENSION_1 = %s\nDIMENSION_2 = %s\nDIMENSION_3 = %s\nDIMENSION_4 = %s\nFLOATING_POINT = IEEE32BIG\n%sEND_HEADER\n' \
    "$2" "$3" "$4" "$5" "${6-}" >"$1"
  [ $links -gt 0 ] && [ $links -lt 1000000000 ] && truncate -s $(($(stat -c %s "$1") + links)) "$1"
}

nersc zero 4 4 4 8
"$minidirac" convert zero good.h5 --quiet 2>err || fail "convert: $(cat err)"
cp good.h5 kept.h5

# What is no lattice file.
mkdir directory
: >empty
head -c 5000 /dev/urandom >random
refuse 2 'cannot be read: No such file' info absent
refuse 2 'must be a file, it is a directory' info directory
refuse 2 'must be a file, it is a device' info /dev/zero
refuse 2 'is no lattice file' info empty
refuse 2 'is no lattice file' info random
if [ "$(id -u)" != 0 ]; then
  cp good.h5 secret && chmod 0 secret
  refuse 2 'cannot be read: Permission denied' info secret
fi

# Sizes that the header claims are checked before anything is allocated.
nersc absurd 60000 60000 60000 60000
refuse 2 'extents must be even and within 2..32767, the header says 60000' info absurd
nersc huge 32766 32766 32766 32766
refuse 2 'at most 2^40 sites' info huge
nersc large 1024 1024 512 512
refuse 2 'is truncated' info large
nersc negative 4 4 4 -4
refuse 2 'the header says 4 x 4 x 4 x -4' info negative
nersc odd 4 4 4 7
refuse 2 'extents must be even' info odd
nersc none 4 4 4 0
refuse 2 'extents must be even' info none
nersc plaquette 4 4 4 8 $'PLAQUETTE = 0.5\n'
refuse 2 'the header says plaquette 0.5, its links give 0' info plaquette
refuse 2 'the header says plaquette 0.5' convert plaquette out.h5
refuse 2 'the rank grid' info good.h5 --grid 3x1x1x1

# A checksum that does not fit: info reports all it found, convert goes on only when told to.
nersc wrong 4 4 4 8 $'CHECKSUM = 1\n'
refuse 2 'checksum mismatch: the file says 00000001, its 147456 bytes of links give 00000000' \
  info wrong
"$minidirac" info wrong --json report >/dev/null 2>&1
grep -q '"checksum":.*"mismatch"' report || fail "info wrote no report of the mismatch"
grep -q '"plaquette":' report || fail "info measured no plaquette after the mismatch"
refuse 2 'checksum mismatch' convert wrong out.h5
[ -e out.h5 ] && fail "convert wrote links that do not fit their checksum"
"$minidirac" convert wrong out.h5 --ignore-checksum --quiet --force 2>err || fail "$(cat err)"
grep -q 'warning: .*checksum mismatch.*(ignored)' err || fail "no warning of the mismatch"

# Where and how to write.
refuse 2 'the format must be named' convert good.h5 lattice
refuse 2 'the format must be named' convert good.h5 lattice.dat
refuse 2 'milc files hold single precision, got double; take single' \
  convert good.h5 lattice --format milc --precision double
refuse 2 'OUT must be a file, but directory is a directory' convert good.h5 directory --format ildg
refuse 2 'OUT must be a file, but /dev/full is a device' convert good.h5 /dev/full --format nersc
refuse 2 'OUT replaces no file, but kept.h5 is there; add --force' convert good.h5 kept.h5
for format in hdf5 ildg; do
  refuse 3 'cannot be' convert good.h5 nowhere/lattice --format $format
done

# A disk without room: the old file stays, nothing else is left.
full() { # full PATH COMMAND...
  local target=$1 format
  shift
  cp kept.h5 "$target"
  for format in hdf5 ildg; do
    refuse 3 "partial cannot be written: no room for" \
      convert big "$target" --format $format --force
    cmp -s kept.h5 "$target" || fail "a full disk cost the old file ($format)"
    compgen -G "$target.*" >/dev/null && fail "a full disk left a partial file ($format)"
  done
}
nersc big 16 16 16 16 # 19 MB: more than any of the limits
mkdir small
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=8m none small 2>/dev/null; then
  mounted=yes
  full small/old.h5
fi
limit=16384 # more than what MPI itself keeps in files
full old.h5
limit=unlimited

# A killed writer: the name holds the old file or the whole new one.
nersc bigger 32 16 16 16
for format in hdf5 ildg; do
  cp kept.h5 target
  "$minidirac" convert bigger target --format $format --quiet --force 2>/dev/null &
  writer=$!
  for _ in $(seq 3000); do
    compgen -G 'target.*.partial' >/dev/null && break
    kill -0 $writer 2>/dev/null || break
    sleep 0.01
  done
  kill -9 $writer 2>/dev/null
  wait $writer 2>/dev/null
  cmp -s kept.h5 target || "$minidirac" info target --quiet 2>err ||
    fail "a killed writer cost the old file ($format): $(cat err)"
  "$minidirac" convert good.h5 target --format $format --quiet --force 2>err ||
    fail "the leavings of a killed writer are in the way ($format): $(cat err)"
  compgen -G 'target.*' >/dev/null && fail "the leavings of a killed writer stay: $(echo target.*)"
done

[ $failures = 0 ] && echo "bad files: all refused as they should be"
exit $((failures > 0))
