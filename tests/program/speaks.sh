#!/usr/bin/env bash
# What long runs say before and while they work, decks that --print-config writes, and the groups and
# examples of --help, of every command.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
ln -s "$source_dir/inputs" .
lattice=inputs/beta6.0_8x8x8x8.h5
mapfile -t commands < <("$minidirac" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -v '^bench$'
  "$minidirac" bench --help | sed -n 's/^  \([a-z]*\)  .*/bench \1/p')
[ "${#commands[@]}" -ge 16 ] || complain "only ${#commands[@]} commands"

# Help: every option under a head, the example last; it is a command line that is understood, and what
# it means reads back as the same deck.
for command in "${commands[@]}"; do
  on 1 $command --help >help || complain "$command --help: exit $?"
  awk '/^[A-Z]/ { head = $1 } /^ +(-o, |-h, )?--/ && head !~ /^(Input|Physics|What|Solver|Machine:|Output|General)$/ { exit 1 }' help ||
    complain "$command: an option under no head"
  example=$(tail -1 help)
  [ "$(tail -2 help | head -1)" = Example ] && [[ $example == "  minidirac $command "* ]] ||
    complain "$command --help ends in '$example'"
  example=${example#  minidirac }
  eval "on 1 $example --print-config" >deck.ini || complain "'$example --print-config': exit $?"
  on 1 $command --config deck.ini --print-config >again.ini || complain "$command: the deck is refused"
  cmp -s deck.ini again.ini || complain "$command: another deck: $(diff deck.ini again.ini | head -3)"
  [ "$(head -1 deck.ini)" = "[$command]" ] || complain "$command: the deck begins with $(head -1 deck.ini)"
  for flag in $(grep -oE '^ +(-[a-z], )?--[a-z0-9-]+' help | grep -oE -- '--[a-z0-9-]+'); do
    case $flag in
    --config | --print-config | --help) continue ;;
    esac
    grep -qE "^(; )?${flag#--} = ." deck.ini || complain "$command: no $flag in the deck"
  done
done
[ "$(ls)" = "$(printf '%s\n' again.ini deck.ini help inputs)" ] || complain "--print-config wrote: $(ls)"

# Values given and defaults, on several ranks; what only the run finds has none.
on 2 solve $lattice --mass 0.1 --u0 0.8 --action asqtad --source 'points:0,0,0,0;1,1,1,1' --quiet --print-config >two.ini
for line in 'mass = 0.1' 'u0 = 0.8' 'source = points:0,0,0,0;1,1,1,1' 'tol = 1e-10' 'backend = auto' 'quiet = true' \
  '; rhs = N' '; grid = AxBxCxD' '; output = FILE'; do
  [ "$(grep -cxF "$line" two.ini)" = 1 ] || complain "not once in the deck: $line"
done
on 1 solve --print-config | grep -qx '; mass = M' || complain "no empty deck to begin with"
# Defaults of a deck give way as the program's own do: a chain goes on with the beta of its file, and
# recipes and kernels that take no such option do not refuse it.
on 1 generate --dims 4x4x4x4 --beta 5.5 --sweeps 1 -o a.h5 --quiet
on 1 generate --from a.h5 --sweeps 1 -o b.h5 --print-config >chain.ini
grep -q '^beta = 6$' chain.ini || complain "no default beta: $(cat chain.ini)"
on 1 generate --config chain.ini | grep -q 'going on with beta 5.5' || complain "another beta than the file's"
on 1 smear $lattice --action ape --fat-out f.h5 --print-config >ape.ini
on 1 smear --config ape.ini --quiet || complain "ape by a deck: exit $?"
on 1 bench dirac --kernel matvec --counts 64 --repetitions 1 --print-config >matvec.ini
on 1 bench dirac --config matvec.ini --quiet 2>err || complain "matvec by a deck: exit $?"
for bad in 'a ;b.h5' ' a.h5' 'a.h5 ' $'a\nb.h5' "$(printf '%0300d' 1)"; do
  refuses 2 "a deck has no way to say --output '" 1 solve $lattice --mass 0.1 --output "$bad" --print-config
done
cp two.ini 'a ;b.ini' # whose own name no deck says
on 1 solve --config 'a ;b.ini' --print-config | cmp -s two.ini - || complain "a deck by a name with ' ;' is refused"
refuses 2 "does not know the key 'print-config'" 1 solve --config <(echo 'print-config = true')

# said FILE PATTERN...: these lines come into the file while the run is at work.
said() {
  local file=$1 pattern missing=
  shift
  for _ in $(seq 600); do
    missing=
    for pattern in "$@"; do grep -qE "$pattern" "$file" 2>/dev/null || missing=$pattern; done
    [ -z "$missing" ] && return 0
    sleep 0.1
  done
  complain "no '$missing' in $(head -20 "$file")"
}
# heads PATTERNS -- ARGUMENTS...: the head stands in a file before the work is done, and a line of progress
# on stderr at once with --progress always, though quiet holds the head back.
heads() {
  local patterns=()
  while [ "$1" != -- ]; do patterns+=("$1") && shift; done
  shift
  : >out && : >err
  OMPI_MCA_orte_create_session_dirs=0 "$minidirac" "$@" --progress always >out 2>err &
  said out "${patterns[@]}"
  said err "^[a-z ]+: .*[0-9.]+ s"
  kill -TERM $!
  wait $!
  [ $? = 3 ] || complain "'$*' was done before it was to end: exit $?"
}
common=('^memory  +[0-9.]+ [MG]B a rank, estimated$' '^ranks  +1 \(grid 1x1x1x1\), [0-9]+ thread')
long="--source random:1 --rhs 16 --tol 1e-20 --max-iter 10000000 --threads 1"
heads "${common[@]}" '^lattice .*, plaquette 0.594' '^operator .* double, inner none' '^action  +naive' '^source ' -- \
  solve $lattice --mass 1e-5 $long
heads "${common[@]}" '^lattice .*, plaquette 0.594' '^source .* even sites' -- \
  solve $lattice --mass 1e-5 --solver multishift --shifts 0,1e-5 $long
heads "${common[@]}" '^lattice .*, plaquette 0.594' '^operator ' -- eigen $lattice --modes 200 --tol 1e-14 --threads 1
heads "${common[@]}" '^lattices  +2, 4x4x4x4, a.h5 to b.h5$' '^operator ' '^inner  +none: the rule is for' '^masses  +0.001, 0.1$' '^source  +random:1$' '^solver ' -- \
  measure --lattices 'a.h5 b.h5' --masses 0.001,0.1 --sources random:1 --vectors 4096 --rhs 1 --output s.h5 --threads 1 \
  --solver multishift --inner auto
heads "${common[@]}" '^lattice  +8x8x8x8, cold$' '^chain  +beta 5.7, 100000 sweeps' -- \
  generate --dims 8x8x8x8 --beta 5.7 --sweeps 100000 -o x.h5 --threads 1
heads "${common[@]}" '^lattice .*, plaquette 0.594' '^operators ' -- validate $lattice --mass 1e-5 --max-iter 1000000 --threads 1
heads '^class S ' -- bench suite --class S --threads 1

# Whoever reads by machine is not disturbed, and quiet holds only with --progress auto.
on 1 solve $lattice --mass 0.5 --json - --progress always 2>err | python3 -c 'import json, sys; json.load(sys.stdin)' ||
  complain "--json - with --progress always"
grep -qE '^solve: iteration [0-9]+( of about [0-9]+)?, residual [0-9.e+-]+, [0-9.]+ s(, about [0-9.]+ s left)?$' err || complain "$(cat err)"
on 1 solve $lattice --mass 0.5 --quiet >out 2>err || complain "solve: exit $?"
[ -s out ] || [ -s err ] && complain "quiet says: $(cat out err)"
# A reader that has seen enough ends nothing.
(on 1 solve $lattice --mass 0.5 2>err; echo $? >code) | head -1 >/dev/null
[ "$(cat code)" = 0 ] && [ ! -s err ] || complain "a pipe that was closed: exit $(cat code), $(cat err)"
finish
