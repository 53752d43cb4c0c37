#!/usr/bin/env bash
# Default threads on cores that others use too: threads that wait sleep, and a solve is not many
# times slower than with one thread. What the user's environment says stands.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
cores=$(nproc)
on 1 generate --dims 8x8x8x16 --start hot -o a.h5 --quiet || complain "generate: exit $?"
s="solve --lattice a.h5 --mass 0.3 --source random:1 --quiet --json r.json"

on 1 $s && [ "$(key waiting r.json)" = '"environment"' ] || complain "OMP_WAIT_POLICY of the environment: $(key waiting r.json)"
unset OMP_NUM_THREADS OMP_WAIT_POLICY
GOMP_SPINCOUNT=5 on 1 $s && [ "$(key waiting r.json)" = '"environment"' ] || complain "GOMP_SPINCOUNT: $(key waiting r.json)"
on 1 $s && [[ $(key waiting r.json) = '"brief"' || $(key waiting r.json) = '"passive"' ]] || complain "default: $(key waiting r.json)"
[ "$(key threads r.json)" -le "$cores" ] || complain "$(key threads r.json) threads on $cores cores"
OMP_NUM_THREADS=3 on 1 $s && [ "$(key threads r.json)" = 3 ] || complain "OMP_NUM_THREADS=3: $(key threads r.json)"
on $((2 * cores)) $s && [ "$(key threads r.json)" = 1 ] || complain "two ranks a core: $(key threads r.json) threads each"

# Busy cores: each has something else to do. The best of three, since that has moods.
busy=()
for _ in $(seq "$cores"); do
  while :; do :; done &
  busy+=($!)
done
best() { # best OPTIONS...: seconds
  for _ in 1 2 3; do
    on 1 $s "$@" || complain "busy cores, $*: exit $?"
    key solver_seconds r.json
  done | sort -g | head -1
}
one=$(best --threads 1)
default=$(best)
[ "$(key waiting r.json)" = '"passive"' ] || complain "busy cores were not noticed: $(key waiting r.json)"
kill "${busy[@]}"
echo "one thread $one s, default $default s"
awk -v a="$one" -v b="$default" 'BEGIN { exit !(b <= 5 * a + 0.2) }' || complain "busy cores: $default s by default, $one s with one thread"
finish
