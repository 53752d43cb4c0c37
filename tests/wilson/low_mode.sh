#!/usr/bin/env bash
# solve with domain-wall quarks on links with a mode near zero: 16 bits, which deflate as soon as the iterations show
# it, take less than 1.6 times the iterations of double; a solve cut before that and one cut after it go on with the
# same bits.
. "$(dirname "$0")/common.sh"

on 1 generate --quiet --dims 6x6x6x12 --beta 6.2 --sweeps 20 --overrelax 2 --seed 5 --output "$work/low.h5" || complain "a lattice with a low mode"
low="--lattice $work/low.h5 --action mobius --mass 0.001 --Ls 8 --source random:1 --rhs 1 --quiet"
for inner in none half bf16 auto; do
  # shellcheck disable=SC2086
  on 1 solve $low --inner $inner --json "$work/low.$inner.json" || complain "a low mode, $inner: exit $?"
done
for inner in half bf16; do
  [ "$(value iterations low.$inner)" -lt $((8 * $(value iterations low.none) / 5)) ] ||
    complain "a low mode: $(value iterations low.$inner) iterations in $inner, $(value iterations low.none) in double"
done
[ "$(value inner low.auto)" = '"single"' ] || complain "auto on a CPU: $(value inner low.auto), $(value inner_reason low.auto)"
for most in 30 150 400; do # the last one with all of the directions
  # shellcheck disable=SC2086
  {
    on 2 solve $low --inner half --max-iter $most --checkpoint "$work/low.state" --checkpoint-every 10 2>"$work/low.err" &&
      complain "half converged in $most iterations"
    [ "$(grep minidirac: "$work/low.err" | grep -vc 'true residual must be')" = 0 ] || complain "states of $most iterations: $(cat "$work/low.err")"
    on 1 solve $low --inner half --checkpoint "$work/low.state" --resume --json "$work/rest.json" || complain "resumed after $most: exit $?"
  }
  [ "$(value residual_history rest)" = "$(value residual_history low.half)" ] || complain "resumed after $most iterations: another history"
done
finish
