#!/usr/bin/env bash
# The commands of docs/tutorial.md, as they stand there, from the top of a source tree.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
python_with matplotlib
ln -s "$source_dir/inputs" "$source_dir/scripts" .
mkdir -p build/src && ln -s "$(realpath "$minidirac")" build/src/minidirac
unset "${!OMPI_@}" # what MPI needs to be told is on the page
sed -n '/^```sh$/,/^```$/{/^```/!p}' "$source_dir/docs/tutorial.md" >commands
[ "$(wc -l <commands)" -ge 8 ] || complain "only $(wc -l <commands) commands were found"
while IFS= read -r line; do
  case $line in
  export*) eval "$line" && continue ;;
  *plot_*) python3 -c 'import matplotlib' 2>/dev/null || continue ;;
  esac
  timeout 120 bash -c "$line" >out 2>err </dev/null || complain "'$line': exit $?: $(tail -1 err)"
done <commands
# What the text says of them.
[ "$(key converged light.json)" = true ] && [ "$(key converged mixed.json)" = true ] || complain "not converged"
[ "$(key residual_history light.json)" = "$(key residual_history ranks.json)" ] || complain "another history on two ranks"
[ "$(key iterations light.json)" -gt "$(key iterations heavy.json)" ] || complain "the lighter quark takes fewer iterations"
python3 -c 'import matplotlib' 2>/dev/null && { [ -s pion.png ] || complain "no picture"; }
finish
