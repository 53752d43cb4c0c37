#!/usr/bin/env bash
# Runs a deck of inputs/ as its first lines say and checks the numbers that they promise:
#   deck.sh PROGRAM SOURCE_FOLDER DECK
# A deck opens with comment lines
#   ; purpose: what it is for
#   ; command: minidirac COMMAND --config inputs/DECK.ini [...]
#   ; expect: KEY VALUE +- TOLERANCE     (KEY[I]: entry I of an array; several such lines)
# where KEY is one of the JSON report; of a key that stands there more than once, the first.
# The command runs in an empty folder that shows inputs/, so what it writes does not stay.
set -u
program=$1
source=$2
deck=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
ln -s "$source/inputs" inputs

head_line() { sed -n "s/^; $1: //p" "inputs/$deck"; }
fail() {
  echo "$deck: $*"
  exit 1
}

[ -n "$(head_line purpose)" ] || fail 'no line "; purpose:"'
[ -n "$(head_line expect)" ] || fail 'no line "; expect:"'
command=$(head_line command)
[[ " $command " == *" minidirac "*" --config inputs/$deck "* ]] ||
  fail "the command does not run this deck: $command"
minidirac() { "$program" "$@"; }
[[ $command == mpirun* ]] && command=${command/ minidirac / $program }
eval "$command --json report.json" >output 2>&1 || fail "exit code $?: $(cat output)"

head_line expect | (
  status=0
  while read -r key value _ tolerance; do
    index=0
    [[ $key == *\[*\] ]] && index=${key#*[} && index=${index%]}
    found=$(sed -n "s/^\s*\"${key%%[*}\":\s*//p" report.json | head -n 1 | tr -d '[]",' |
      awk -v i=$((index + 1)) '{ print $i }')
    awk -v found="$found" -v value="$value" -v tolerance="$tolerance" 'BEGIN {
      if (value ~ /^[-+0-9.]/) exit !(found ~ /^[-+0-9.]/ && (found - value)^2 <= tolerance^2)
      exit found != value }' || { echo "$deck: $key is '$found', expected $value +- $tolerance"; status=1; }
    echo "$key = $found (expected $value +- $tolerance)"
  done
  exit $status
)
