#!/usr/bin/env bash
# reference.sh MINIDIRAC SOURCE: the man page names every option of every command, and the completion
# offers commands, kinds, flags and values.
set -euo pipefail
program=$1
generator=$2/scripts/packaging/reference.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "reference: $*" && exit 1; }

python3 "$generator" man "$program" > "$work/minidirac.1"
python3 "$generator" bash "$program" > "$work/minidirac.bash"
for command in info convert generate smear solve measure eigen validate "bench dirac" "bench suite" "bench gemm" "bench shift"; do
  page=$(sed -n "/^\.SH \"${command^^}\"/,/^\.SH/p" "$work/minidirac.1" | sed 's/\\-/-/g')
  flags=$("$program" $command --help | grep -oE '^ +(-[a-z], )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+')
  [ -n "$flags" ] || fail "no flags in the help of $command"
  for flag in $flags; do
    grep -qE -- "^\.B .*$flag( |\$)" <<<"$page" || fail "$flag of $command is not in the man page"
  done
done
grep -q '^$' "$work/minidirac.1" && fail "an option of the man page has no text"

complete_words() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _minidirac
  echo "${COMPREPLY[*]}"
}
complete() { :; } # of the interactive shell
. "$work/minidirac.bash"
[ "$(complete_words minidirac so)" = solve ] || fail "so is not completed to solve"
[ "$(complete_words minidirac bench ge)" = "gemm gemv" ] || fail "kinds: $(complete_words minidirac bench ge)"
[ "$(complete_words minidirac solve --lat)" = --lattice ] || fail "--lat: $(complete_words minidirac solve --lat)"
[ "$(complete_words minidirac solve --lattice x --backend cpu_)" = "cpu_ref cpu_simd" ] || fail "values of --backend"
[ "$(complete_words minidirac bench suite --links-on g)" = gpu ] || fail "values of --links-on"
[ "$(complete_words minidirac bench gemm --shap)" = --shapes ] || fail "--shap"
python3 "$generator" > /dev/null && fail "no exit code for missing words"
echo "reference: in order"
