#!/usr/bin/env bash
# Memory that one rank alone cannot have, at its start and at places of its work, ends all ranks with one
# message, and soon. The third argument is the library that makes allocations fail.
. "$(dirname "$0")/common.sh"
fails=$3
cd "$work" || exit 1
export OMP_NUM_THREADS=1 MINIDIRAC_WAITING=off
on 1 generate --dims 4x4x4x4 --start hot --seed 1 -o a.h5 --quiet || complain "generate: exit $?"
printf '#!/usr/bin/env bash\nLD_PRELOAD=%s exec "%s" "$@"\n' "$fails" "$minidirac" >starved
chmod +x starved

# starve RANK STEP ARGUMENTS...: the first allocations of that rank, then every STEP-th.
starve() {
  local rank=$1 step=$2 all at got refused=0
  shift 2
  all=$(NO_MEMORY_RANK=$rank NO_MEMORY_AT=0 timeout 60 mpirun -n 2 ./starved "$@" 2>&1 | sed -n 's/^allocations: //p')
  [ "${all:-0}" -gt 20 ] || complain "'$*': ${all:-no} allocations on rank $rank"
  for at in 1 2 3 $(seq 4 "$step" "${all:-0}"); do
    NO_MEMORY_RANK=$rank NO_MEMORY_AT=$at timeout -k 1 30 mpirun -n 2 ./starved "$@" --patience 2 >out 2>err
    got=$?
    [ $got != 0 ] || continue # it could do without
    refused=$((refused + 1))
    [ $got = 3 ] || complain "'$*', allocation $at of rank $rank: exit $got: $(head -3 err)"
    [ "$(grep -c '^minidirac: error: ' err)" = 1 ] || complain "'$*', allocation $at of rank $rank: $(cat err)"
  done
  echo "$1, rank $rank: $refused refusals among $all allocations"
  [ $refused -gt 3 ] || complain "'$*': $refused refusals"
}
# A library whose end waits for ever keeps nobody waiting.
for words in 0:--version 0:--help 2:nonsense; do
  NO_END=1 timeout -k 1 60 ./starved ${words#*:} >out 2>err
  got=$?
  [ $got = "${words%%:*}" ] && [ -s out -o -s err ] || complain "the end of a library, ${words#*:}: exit $got: $(cat err)"
done
starve 1 7 solve a.h5 --mass 1 --source wall:0 --quiet --output s.h5 --force
starve 0 11 generate --from a.h5 --beta 5.7 --sweeps 1 --quiet -o b.h5 --force
finish
