# What the scripts about quarks with four spins share.
. "$(dirname "$0")/../program/common.sh"
lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
export OMP_NUM_THREADS=1

# solved NAME RANKS ARGUMENTS...: report NAME.json, converged.
solved() {
  local name=$1 ranks=$2
  shift 2
  on "$ranks" solve --lattice "$lattice" "$@" --quiet --json "$work/$name.json" || complain "$*: exit $?"
  [ "$(key converged "$work/$name.json")" = true ] || complain "$*: not converged"
}
value() { key "$1" "$work/$2.json"; }

# below A B: A < B
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b && -a < b) }'; }

