#!/usr/bin/env bash
# A rank that is killed ends the others within a minute, with a message and a failed exit; files that
# were there before stay as they were, and the next run of the same command works.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
export NOTES=$work
cat >rank <<'S'
#!/usr/bin/env bash
echo $$ >"$NOTES/pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
S
chmod +x rank

# True once the process is past its set-up, in which signals are not caught yet.
works() {
  local mask
  mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
  ((0x${mask:-0} & 0x4000))
}

# killed RANK FILE ARGUMENTS...: kills that one of two ranks while FILE is there.
killed() {
  local rank=$1 file=$2 pid='' got
  shift 2
  rm -f pid.*
  cp "$file" before || complain "'$*': no $file"
  timeout 120 mpirun -n 2 ./rank "$minidirac" "$@" >out 2>err &
  local job=$!
  for ((i = 0; i < 300; i++)); do # until it works, or has ended
    kill -0 $job 2>/dev/null || break
    pid=$(cat "pid.$rank" 2>/dev/null)
    [ -n "$pid" ] && works "$pid" && break
    sleep 0.1
  done
  sleep 0.5
  kill -KILL "${pid:-none}" 2>/dev/null || complain "'$*': rank $rank ended by itself: $(head -3 err)"
  local start=$SECONDS
  wait $job
  got=$?
  [ $got != 0 ] || complain "'$*' with rank $rank killed: exit 0"
  [ $((SECONDS - start)) -le 60 ] || complain "'$*' with rank $rank killed: ended after $((SECONDS - start)) s"
  grep -qi 'signal 9\|killed' err || complain "'$*' with rank $rank killed: nothing says so: $(head -3 err)"
  cmp -s "$file" before || complain "'$*' with rank $rank killed: $file has changed"
}

on 1 generate --dims 12x12x12x12 --start hot --seed 3 --output l.h5 --quiet || complain "generate: exit $?"
short="solve l.h5 --mass 1 --output s.h5 --force --quiet"
on 2 $short || complain "solve: exit $?"
endless="solve l.h5 --mass 1e-5 --tol 1e-20 --source random:1 --max-iter 10000000 --output s.h5 --force --quiet"
killed 1 s.h5 $endless
on 2 $short || complain "solve after a killed one: exit $?"

chain="generate --dims 12x12x12x12 --start heatbath --seed 3 --output l.h5 --force --quiet"
killed 0 l.h5 $chain --sweeps 100000
on 2 $chain --sweeps 1 || complain "generate after a killed one: exit $?"
on 1 info l.h5 --quiet || complain "info of the new lattice: exit $?"
left=$(find . -maxdepth 1 -type f ! -name 'pid.*' | sort | tr '\n' ' ')
[ "$left" = './before ./err ./l.h5 ./out ./rank ./s.h5 ' ] || complain "files are left: $left"
finish
