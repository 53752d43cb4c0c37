#!/usr/bin/env bash
# Ranks on GPUs: one that stops answering ends all within a minute, with a message that names it and exit
# 3; a transport that these ranks cannot use is refused with the reason.
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
export NOTES=$work
cat >rank <<'S'
#!/usr/bin/env bash
echo $$ >"$NOTES/pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
S
chmod +x rank
on 1 generate --dims 16x16x16x16 --start hot --seed 3 --output l.h5 --quiet || complain "generate: exit $?"
short="solve l.h5 --backend cuda --mass 1 --quiet"
on 1 $short 2>err
got=$?
[ $got = 3 ] && grep -qE 'not available|GPU code needs|no CUDA' err && exit 77
[ $got = 0 ] || complain "cuda: exit $got, $(cat err)"
solve="solve l.h5 --backend cuda --mass 1e-5 --tol 1e-20 --source random:1 --max-iter 10000000 --quiet"

# stops TRANSPORT PATTERN: rank 1 of two is stopped in the middle of its work.
stops() {
  local transport=$1 pattern=$2 pid job start got
  rm -f pid.*
  timeout 150 mpirun -n 2 ./rank "$minidirac" $solve --transport "$transport" >out 2>err &
  job=$!
  sleep 12 # past the start of CUDA and of the transport
  if ! kill -0 $job 2>/dev/null; then
    wait $job
    got=$?
    [ $got = 3 ] && grep -q "NCCL\|transport $transport" err && echo "not here: $(grep error err)" && return
    complain "$transport: ended by itself with $got: $(head -3 err)"
    return
  fi
  pid=$(cat pid.1)
  kill -STOP "$pid" || complain "$transport: rank 1 ended by itself"
  start=$SECONDS
  wait $job
  got=$?
  kill -KILL "$pid" 2>/dev/null
  echo "$transport: exit $got after $((SECONDS - start)) s: $(grep '^minidirac: error' err | head -2)"
  [ $got = 3 ] || complain "$transport with a stopped rank: exit $got: $(head -3 err)"
  [ $((SECONDS - start)) -le 65 ] || complain "$transport with a stopped rank: $((SECONDS - start)) s"
  [ "$(grep -c '^minidirac: error: ' err)" = 1 ] || complain "$transport: $(grep -c '^minidirac: error' err) error lines"
  grep -qE -- "$pattern" err || complain "$transport with a stopped rank says: $(head -3 err)"
}
stops peer 'the GPU of rank 0 waited 20 s for rank 1 in vain|rank 0 waited 45 s'
stops nccl 'rank 0 waited 45 s for (the other ranks to end )?an iteration of the solver'

export MINIDIRAC_TEST_NODE_SIZE=1
refuses 3 'only within a host.*use another transport' 2 $short --transport peer
unset MINIDIRAC_TEST_NODE_SIZE
refuses 3 'needs neighbours on different nodes; use peer' 2 $short --transport mixed
if [ "$(nvidia-smi --list-gpus 2>/dev/null | wc -l)" = 1 ]; then
  refuses 3 'NCCL needs a GPU for each rank, and ranks 0 and 1 share one' 2 $short --transport nccl
fi
finish
