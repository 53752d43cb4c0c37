#!/usr/bin/env bash
# A short chain whose plaquettes are known, sweep by sweep; the mean is that of the sweeps that are not
# discarded. Another mathematics library may round a logarithm otherwise, which changes a plaquette by
# 1e-15 unless it decides a step of the heatbath.
. "$(dirname "$0")/../program/common.sh"
on 1 generate --dims 4x4x4x4 --beta 5.7 --sweeps 6 --discard 3 --seed 3 --overrelax 2 -o "$work/c.lime" \
  --quiet --json "$work/c.json" || complain "exit $?"
history='[0.68426778896843721, 0.616369056168695, 0.57260729250746, 0.5690771795237225, 0.56230311972279068, 0.556138042887679]'
close "$(key plaquette_history "$work/c.json")" "$history" 1e-9 || complain "plaquettes are $(key plaquette_history "$work/c.json")"
close "$(key plaquette_mean "$work/c.json")" 0.56250611404473072 1e-9 || complain "mean is $(key plaquette_mean "$work/c.json")"
close "$(key plaquette_error "$work/c.json")" 0.0037365857518419621 1e-6 || complain "error is $(key plaquette_error "$work/c.json")"
finish
