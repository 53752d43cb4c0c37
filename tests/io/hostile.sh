#!/usr/bin/env bash
# hostile.sh MINIDIRAC WRITE_SEEDS: the program on files of every kind, on HDF5 files of every layout
# and on damaged ones: exit code 0, or 2 with one line on stderr; no control characters on the
# terminal or in the report, which is UTF-8.
set -u
minidirac=$1 write_seeds=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# run CODES COMMAND...: the exit code is one of CODES ("0", "2", "0 2").
run() {
  local codes=$1 got
  shift
  timeout 60 "$minidirac" "$@" >out 2>err
  got=$?
  [[ " $codes " = *" $got "* ]] || fail "$*: exit code $got, expected $codes: $(cat -v err)"
  [ $got = 0 ] || [ "$(grep -c . err)" = 1 ] || fail "$*: $(grep -c . err) lines on stderr"
  LC_ALL=C grep -q '[[:cntrl:]]' out err && fail "$*: control characters: $(cat -v out err)"
  return 0
}

mkdir seeds
"$write_seeds" seeds || fail "no seeds"
named=$(grep -l 'note' seeds/layout* | head -n 1) # has control characters in names
for file in seeds/{thin,fat}.* $(grep -l '/etc/' seeds/layout*); do
  run "0 2" info "$file" --json report
  iconv -f utf-8 -t utf-8 report >/dev/null 2>&1 || fail "info $file: the report is not UTF-8"
done
run 0 info "$named" --json report
grep -q 'x1b\[31m' out && grep -q 'x1b\[31m' report || fail "names of a file are not escaped"

printf '{"command": "solve", "\377\033[31mkey": 1}' >named.json # keys too
run 0 info named.json --json report
iconv -f utf-8 -t utf-8 report >/dev/null 2>&1 && grep -qF 'xff\\x1b[31mkey' report || fail "keys of a file are not escaped: $(cat -v report)"

# Data in other files: not read, whatever the command (the files come one kind after the other).
turn=0
for file in $(grep -l '/etc/' seeds/layout*); do
  commands=("convert $file copy.h5" "solve --lattice $file --mass 0.1")
  run 2 ${commands[turn++ % 2]}
  grep -q 'root:' out err && fail "$file: another file was read"
done

# A name of a file that writes to the terminal; an end that is missing; a checkpoint that is none.
cp seeds/thin.h5 $'seeds/\033[31mred\n.h5'
run 0 info $'seeds/\033[31mred\n.h5' --json report
grep -qF 'seeds/\x1b[31mred\x0a.h5' out || fail "info does not escape the name: $(cat -v out)"
truncate -s 3000 $'seeds/\033[31mred\n.h5'
run 2 info $'seeds/\033[31mred\n.h5' --quiet
grep -qF '\x1b[31mred\x0a.h5' err || fail "the name is not escaped: $(cat -v err)"
for checkpoint in seeds/layout03.h5 $'seeds/\033[31mred\n.h5' seeds; do
  run 2 solve --lattice seeds/thin.h5 --mass 0.1 --checkpoint "$checkpoint" --resume --quiet
done
mkfifo pipe
run 2 solve --lattice seeds/thin.h5 --mass 0.1 --checkpoint pipe --resume --quiet

# The library ends with a signal on these, or finds no end; another version of it may read one.
for file in seeds/damaged*.h5; do
  [ -e "$file" ] || fail "no damaged files"
  for command in "info $file" "convert $file copy.h5" "solve --lattice $file --mass 0.1"; do
    run "0 2" $command
    rm -f copy.h5
  done
done
# Nor are files of another kind taken for what they are not.
for file in seeds/{propagator,checkpoint,modes,study}.h5; do
  run 2 solve --lattice $file --mass 0.1
done
run 2 solve --lattice seeds/thin.h5 --mass 0.1 --deflate seeds/study.h5
run 2 solve --lattice seeds/thin.h5 --mass 0.1 --guess seeds/modes.h5
[ $failures = 0 ] && echo "hostile files: all refused as they should be"
exit $((failures > 0))
