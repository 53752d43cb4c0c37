#!/usr/bin/env bash
# SIGINT, SIGTERM and SIGUSR1 end solves of every kind, a chain, validate and bench after the step
# under way, on one rank and on two of which one alone is signalled: exit 3, one error line, a
# partial report, the state where one was asked for; a second signal ends the process at once.
. "$(dirname "$0")/common.sh"
lattice=$work/lattice.h5
on 1 generate --dims 12x12x12x12 --start hot --seed 3 --output "$lattice" --quiet || complain "generate: exit $?"

# A rank notes its process before it becomes the program.
cat >"$work/rank" <<'S'
#!/usr/bin/env bash
echo $$ >"$NOTES/pid.${OMPI_COMM_WORLD_RANK:-0}"
exec "$@"
S
chmod +x "$work/rank"

# True once the process catches SIGTERM.
catches() {
  local mask
  mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
  ((0x${mask:-0} & 0x4000))
}

# start RANKS ARGUMENTS...: in the background; sets `pid` of the last rank once it catches signals.
start() {
  local ranks=$1
  shift
  rm -f "$work"/pid.* "$work/s.json"
  export NOTES=$work
  if [ "$ranks" = 1 ]; then
    timeout 120 "$work/rank" "$minidirac" "$@" --json "$work/s.json" >"$work/out" 2>"$work/err" &
  else
    timeout 120 mpirun -n "$ranks" "$work/rank" "$minidirac" "$@" --json "$work/s.json" >"$work/out" 2>"$work/err" &
  fi
  job=$!
  for ((i = 0; i < 600; i++)); do
    pid=$(cat "$work/pid.$((ranks - 1))" 2>/dev/null)
    [ -n "$pid" ] && catches "$pid" && break
    sleep 0.1
  done
}

# ends SIGNAL RANKS PATTERN ARGUMENTS...: what the signal makes of the run.
ends() {
  local signal=$1 ranks=$2 pattern=$3
  shift 3
  start "$ranks" "$@"
  sleep 0.3
  kill -"$signal" "$pid"
  wait $job
  local got=$?
  [ $got = 3 ] || complain "$signal, $ranks ranks, '$*': exit $got: $(head -3 "$work/err")"
  grep -qE "error: SIG$signal ended $pattern" "$work/err" || complain "$signal, '$*': $(head -3 "$work/err")"
  [ "$(grep -c '^minidirac: error: ' "$work/err")" = 1 ] || complain "'$*': not one error line"
  [ "$(key interrupted "$work/s.json")" = true ] || complain "'$*': the report is not that of an interrupted run"
}

# A deck that nobody writes is not waited for any longer.
mkfifo "$work/deck"
for ranks in 1 2; do
  for signal in TERM INT USR1; do
    start $ranks solve --config "$work/deck"
    sleep 0.3
    kill -$signal "$pid"
    wait $job
    got=$?
    [ $got = 3 ] || complain "$signal, $ranks ranks, a deck that is a pipe: exit $got: $(head -3 "$work/err")"
    grep -q "error: SIG$signal ended the run, which was waiting for the end of deck" "$work/err" || complain "$(head -3 "$work/err")"
  done
done

# Solves that would go on for minutes.
endless="solve $lattice --mass 1e-5 --tol 1e-20 --source random:1 --quiet"
long="$endless --max-iter 10000000"
for ranks in 1 2; do
  ends TERM $ranks 'the solve after [0-9]+ iterations? at a true residual' $long
  [ "$(key iterations "$work/s.json")" -gt 0 ] || complain "no iterations"
  [ "$(key converged "$work/s.json")" = false ] || complain "converged"
  commas=$(key residual_history "$work/s.json" | tr -cd , | wc -c)
  [ "$commas" = "$(key iterations "$work/s.json")" ] || complain "$commas commas in the history"
  ends INT $ranks 'the solve' $long --inner single --output "$work/part.h5"
  [ "$(key output_written "$work/s.json")" = false ] && [ ! -e "$work/part.h5" ] || complain "a solution of half a solve"
  ends USR1 $ranks 'the solve' $long --solver block --rhs 4
  ends TERM $ranks 'the solve after [0-9]+ common iterations?' $long --solver multishift --shifts 0,0.1
  ends TERM $ranks 'the chain after sweep [0-9]+ of 100000, .* is not written' \
    generate --dims 8x8x8x8 --sweeps 100000 --output "$work/chain.h5" --quiet
  [ ! -e "$work/chain.h5" ] || complain "a part of a chain was written as the whole"
done
ends INT 2 'the chain after sweep [0-9]+ of 100000; .*--from' \
  generate --dims 8x8x8x8 --sweeps 100000 --output "$work/chain.h5" --checkpoint "$work/part.h5" --precision single --quiet
[ "$(key sweeps_done "$work/s.json")" -gt 0 ] || complain "no sweeps"
on 1 info "$work/part.h5" --quiet --json "$work/part.json" || complain "the links of a part of a chain: exit $?"
[ "$(key checksum "$work/part.json") $(key precision "$work/part.json")" = '"ok" "double"' ] || complain "the links of a part of a chain: $(key checksum "$work/part.json")"

# The state that a signal leaves behind goes on as if there had been none; that of mixed CG goes on.
for inner in none single; do
  with="$endless --inner $inner --checkpoint $work/$inner.h5"
  ends TERM 2 'the solve after .* has its state, go on with --resume' $with --max-iter 10000000
  reached=$(key iterations "$work/s.json")
  on 1 $with --resume --max-iter $((reached + 30)) --json "$work/resumed.json" 2>"$work/err"
  [ $? = 1 ] || complain "resumed: $(cat "$work/err")"
  [ "$(key iterations "$work/resumed.json")" = $((reached + 30)) ] || complain "resumed at another iteration"
  [ $inner = single ] && continue
  on 1 $endless --max-iter $((reached + 30)) --json "$work/through.json" 2>"$work/err"
  [ "$(key relative_residual "$work/resumed.json")" = "$(key relative_residual "$work/through.json")" ] ||
    complain "resumed: $(key relative_residual "$work/resumed.json"), through: $(key relative_residual "$work/through.json")"
done

# bench and validate keep what they have.
ends TERM 1 'bench dirac early' bench dirac --dims 8x8x8x8 --repetitions 100000 --backends cpu_simd --quiet
ends TERM 1 'bench dirac early' bench dirac --kernel matvec --counts "$(printf '16777216,%.0s' {1..30})16777216" --repetitions 1000 --quiet
ends TERM 1 'bench solver early' bench solver --lattice "$lattice" --mass 1e-5 --tol 1e-15 --max-iter 10000000 --inner none --quiet
ends INT 1 'validate early' validate "$lattice" --mass 1e-6 --max-iter 10000000 --backend cpu_simd --quiet
grep -q '"operation"' "$work/s.json" || complain "validate kept no rows"

# The second one does not wait for anything, unless it comes with the first: timeout sends both at once.
start 1 generate --dims 24x24x24x24 --sweeps 10 --overrelax 1000 --output "$work/slow.h5" --quiet
kill -TERM "$pid"
sleep 0.1
kill -TERM "$pid"
sleep 0.1
kill -0 "$pid" || complain "two signals within a tenth of a second: ended"
sleep 0.6
kill -TERM "$pid"
wait $job
[ $? = 143 ] || complain "a signal after these: exit $?"
finish
