#!/usr/bin/env bash
# two_nodes.sh MINIDIRAC SOURCE TEST...: two network namespaces with names of their own are two nodes, between which Open MPI
# starts ranks by ssh and talks TCP. Solves and the tests of halos (TEST, programs of cmocka) on 2 x 2 ranks; solves give the
# bits of one node. A node that goes away, its processes killed or its cable pulled too, ends all within a minute.
. "$(dirname "$0")/../program/common.sh"
tests=("${@:3}")
PATH=$PATH:/usr/sbin:/sbin
for tool in ip sshd ssh ssh-keygen unshare; do
  command -v $tool >/dev/null || { echo "no $tool here" && exit 77; }
done
near=md${$}a far=md${$}b
remove() {
  local name pids
  for name in $near $far; do
    pids=$(ip netns pids $name 2>/dev/null)
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null
    ip netns del $name 2>/dev/null
  done
  rm -rf "$work"
}
trap remove EXIT
ip netns add $near 2>"$work/err" && ip netns add $far && ip link add veth0 netns $near type veth peer name veth0 netns $far ||
  { echo "no network namespaces here: $(cat "$work/err")" && exit 77; }
cd "$work" || exit 1
ssh-keygen -q -t ed25519 -N '' -f key && cp key.pub authorized && mkdir -p /run/sshd # of sshd, which wants it
# in_node NAME COMMAND...: in that namespace, as a host of that name.
in_node() {
  local name=$1
  shift
  ip netns exec "$name" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$name" "$@"
}
addresses=(10.123.0.1 10.123.0.2)
serve() { # serve NAME: the ssh daemon of that node
  in_node "$1" "$(command -v sshd)" -f /dev/null -h "$work/key" -o AuthorizedKeysFile="$work/authorized" -o StrictModes=no \
    -o PermitRootLogin=yes -o UsePAM=no -o PidFile="$work/$1.pid" || complain "sshd of $1: exit $?"
}
for name in $near $far; do
  ip -n $name addr add ${addresses[$([ $name = $near ]; echo $?)]}/24 dev veth0
  ip -n $name link set veth0 up
  ip -n $name link set lo up
  serve $name
done
# across SECONDS COMMAND...: two ranks on each node. A node that is silent is given up after 25 s.
remote="ssh -i $work/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes"
export OMPI_MCA_btl=self,vader,tcp
export OMPI_MCA_oob_tcp_keepalive_time=10 OMPI_MCA_oob_tcp_keepalive_intvl=5 OMPI_MCA_oob_tcp_keepalive_probes=3
across() {
  local limit=$1
  shift
  in_node $near timeout -k 5 "$limit" mpirun --host "${addresses[0]}:2,${addresses[1]}:2" --map-by slot \
    --mca plm_rsh_agent "$remote" -x OMP_NUM_THREADS=1 -x OMP_WAIT_POLICY ${ASAN_OPTIONS:+-x ASAN_OPTIONS} -n 4 "$@"
}

numbers() { grep -E '^\s*"(iterations|residual_history|relative_residual|pion_correlator|grid)":' "$1"; }
lattice=$source_dir/inputs/beta6.0_8x8x8x8.h5
for grid in 1x1x1x4 1x1x2x2 2x2x1x1; do
  solve="solve $lattice --mass 0.1 --grid $grid --check-halo --threads 1 --quiet"
  on 4 $solve --json one.json || complain "$grid on one node: exit $?"
  across 120 "$minidirac" $solve --json two.json 2>err || complain "$grid on two nodes: exit $?, $(head -5 err)"
  [ "$(key hosts two.json) $(key hosts one.json)" = "2 1" ] || complain "$grid: $(key hosts two.json) and $(key hosts one.json) hosts"
  [ -n "$(numbers two.json)" ] && [ "$(numbers two.json)" = "$(numbers one.json)" ] || complain "$grid: other numbers on two nodes"
done
for test in "${tests[@]}"; do
  across 300 "$test" >out 2>&1 || complain "$(basename "$test") on two nodes: exit $?, $(grep -v ' OK ' out | tail -20)"
done

# loses HOW PATTERN: the far node goes away in the middle of a solve; one line of the message matches.
loses() {
  local got start
  across 150 "$minidirac" solve "$lattice" --mass 1e-6 --tol 1e-20 --source random:1 --max-iter 10000000 --threads 1 \
    --quiet --checkpoint state.h5 --checkpoint-every 20 >out 2>err &
  local job=$!
  for ((i = 0; i < 300; i++)); do # until it iterates
    [ -f state.h5 ] && break
    sleep 0.1
  done
  rm state.h5 || complain "$1: no checkpoint, $(head -5 err)"
  [ "$1" = killed ] || ip -n $far link set veth0 down
  kill -KILL $(ip netns pids $far)
  start=$SECONDS
  wait $job
  got=$?
  [ $got != 0 ] && [ $got != 124 ] || complain "far node $1: exit $got"
  [ $((SECONDS - start)) -le 60 ] || complain "far node $1: all ended after $((SECONDS - start)) s"
  [ -z "$(ip netns pids $near | grep -vxF "$(cat $near.pid)")" ] || complain "far node $1: processes are left on the other"
  grep -qE "$2" err || complain "far node $1: nothing says so: $(cat err)"
}
loses killed "Connection to ${addresses[1]} closed"
serve $far
loses cut 'lost communication with a remote daemon'
finish
