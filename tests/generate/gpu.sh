#!/usr/bin/env bash
# minidirac generate --on gpu: the chain of the host to rounding, the same bits on every rank grid; it
# goes on from its files, also on the host, and a signal leaves a checkpoint. Skipped without a GPU.
. "$(dirname "$0")/../program/common.sh"
cd "$work" || exit 1
links() { on 1 info "$1" --json i.json --quiet && key checksum_computed i.json; }
chain=(--dims 8x4x6x8 --beta 5.7 --seed 7)
on 1 generate "${chain[@]}" --sweeps 6 --overrelax 0 --on gpu --save-every 2 -o gpu.h5 --quiet --json gpu.json 2>err
got=$?
if [ $got = 3 ] && grep -qE 'GPU code needs|has no GPU support' err; then
  [ -z "$(ls ./*.h5 2>/dev/null)" ] || complain "no GPU, and yet a file"
  [ $failures = 0 ] && exit 77
  finish
fi
[ $got = 0 ] || complain "gpu: exit $got, $(cat err)"
[ "$(key on gpu.json)" = '"gpu"' ] || complain "on: $(key on gpu.json)"
on 1 generate "${chain[@]}" --sweeps 6 --overrelax 0 -o cpu.h5 --quiet --json cpu.json || complain "cpu: exit $?"
[ "$(key on cpu.json)" = '"cpu"' ] || complain "on: $(key on cpu.json)"
close "$(key plaquette_history gpu.json)" "$(key plaquette_history cpu.json)" 1e-11 || complain "host and GPU: $(key plaquette_history gpu.json)"
close "$(key polyakov_loop gpu.json)" "$(key polyakov_loop cpu.json)" 1e-9 || complain "Polyakov loop: $(key polyakov_loop gpu.json)"
history=$(key plaquette_history gpu.json)
close "${history##*,}" "$(key plaquette gpu.json)" 1e-14 || complain "the last plaquette: on the GPU ${history##*,}, on the host $(key plaquette gpu.json)"

on 2 generate "${chain[@]}" --sweeps 6 --overrelax 0 --on gpu -o two.h5 --quiet --json two.json || complain "two ranks: exit $?"
[ "$(links two.h5)" = "$(links gpu.h5)" ] || complain "two ranks: other links"
[ "$(key plaquette_history two.json)" = "$(key plaquette_history gpu.json)" ] || complain "two ranks: other plaquettes"
on 1 generate --from gpu.000004.h5 --sweeps 2 --on gpu -o rest.h5 --quiet || complain "rest: exit $?"
[ "$(links rest.h5)" = "$(links gpu.h5)" ] || complain "a chain that went on has other links"
on 1 generate --from gpu.000004.h5 --sweeps 2 -o mixed.h5 --quiet --json mixed.json || complain "rest on the host: exit $?"
close "$(key plaquette mixed.json)" "$(key plaquette gpu.json)" 1e-11 || complain "rest on the host: $(key plaquette mixed.json)"

timeout 60 "$minidirac" generate --dims 8x8x8x8 --sweeps 100000 --on gpu -o long.h5 --checkpoint stop.h5 >out 2>err &
job=$!
for ((i = 0; i < 200; i++)); do
  grep -q '^ *[1-9][0-9]* *0\.' out && break
  sleep 0.1
done
pkill -TERM -P $job
wait $job
got=$?
[ $got = 3 ] && grep -q 'SIGTERM ended the chain after sweep [1-9]' err || complain "SIGTERM: exit $got, $(cat err)"
[ -e stop.h5 ] && [ ! -e long.h5 ] || complain "SIGTERM: no checkpoint"
on 1 generate --from stop.h5 --sweeps 1 --on gpu -o on.h5 --quiet || complain "from the checkpoint: exit $?"
finish
