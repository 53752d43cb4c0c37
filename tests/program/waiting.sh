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

# Threads that are bound have all cores that the program was started on, one each, although it starts
# itself once more when the library has bound the first of them.
apart() { # apart PID: two threads of that process may run on cores of their own each
  for _ in $(seq 50); do
    lists=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\)$/\1/p' /proc/"$1"/task/*/status 2>/dev/null | sort -u)
    [ "$(wc -w <<<"$lists")" -lt 2 ] || return 0
    sleep 0.1
  done
  return 1
}
on 1 $s || complain "unbound: exit $?"
usable=$(key cores_usable r.json)
unbound="$(key threads r.json) threads on $usable cores"
if [ "$usable" -gt 1 ]; then
  for bind in close spread true; do
    for places in '' cores threads; do
      export OMP_PROC_BIND=$bind OMP_PLACES=$places
      [ -n "$places" ] || unset OMP_PLACES
      on 1 $s || complain "OMP_PROC_BIND=$bind: exit $?"
      bound="$(key threads r.json) threads on $(key cores_usable r.json) cores"
      [ "$bound" = "$unbound" ] || complain "OMP_PROC_BIND=$bind OMP_PLACES=$places: $bound, not $unbound"
    done
  done
  OMP_NUM_THREADS=2 OMPI_MCA_orte_create_session_dirs=0 "$minidirac" solve --lattice a.h5 --mass 1e-6 --tol 1e-20 \
    --max-iter 10000000 --quiet &
  apart $! || complain "OMP_PROC_BIND=true: two threads have no two cores: $lists"
  kill -KILL $!
  wait $! 2>/dev/null
  taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')" "$minidirac" $s
  [ "$(key cores_usable r.json) $(key threads r.json)" = "1 1" ] ||
    complain "one core: $(key threads r.json) threads on $(key cores_usable r.json)"
  OMPI_MCA_hwloc_base_binding_policy=core on 2 $s || complain "ranks bound to cores: exit $?"
  [ "$(key threads r.json)" -le $((usable / 2)) ] ||
    complain "two ranks bound to cores: $(key threads r.json) threads on $(key cores_usable r.json)"
  unset OMP_PROC_BIND OMP_PLACES
fi

# Busy cores: each has something else to do. The best of three, since that has moods.
busy=()
for _ in $(seq "$cores"); do
  while :; do :; done &
  busy+=($!)
done
best() { # best OPTIONS...: sets $best to the seconds, and waits for no pipe, so that what fails is counted
  best=
  for _ in 1 2 3; do
    rm -f r.json
    on 1 $s "$@" || complain "busy cores, $*: exit $?"
    best=$(printf '%s\n' $best "$(key solver_seconds r.json)" | sort -g | head -1)
    awk -v s="$best" 'BEGIN { exit !(s + 0 > 0) }' || complain "busy cores, $*: must take seconds above 0, got '$best'"
  done
}
best --threads 1
one=$best
best
default=$best
[ "$(key waiting r.json)" = '"passive"' ] || complain "busy cores were not noticed: $(key waiting r.json)"
kill "${busy[@]}"
echo "one thread $one s, default $default s"
awk -v a="$one" -v b="$default" 'BEGIN { exit !(b <= 5 * a + 0.2) }' || complain "busy cores: $default s by default, $one s with one thread"
finish
