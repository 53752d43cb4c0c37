# Sourced by the tests of estimates, after common.sh.
# near LOW HIGH WHAT: the estimate of report r.json over the peak beyond what the process began with, of
# the host or what $space says.
space=host
near() {
  awk -v e="$(key ${space}_bytes_estimated r.json)" -v p="$(key ${space}_bytes_peak r.json)" -v low="$1" -v high="$2" \
    'BEGIN { r = e / p; printf "%s ", r; exit !(r >= low && r <= high) }' ||
    complain "$3: estimate $(key ${space}_bytes_estimated r.json), peak $(key ${space}_bytes_peak r.json)"
  echo "$3"
}

# holds WHAT ARGUMENTS...: the estimate of a command that may miss its tolerance.
holds() {
  local what=$1
  shift
  on 1 "$@" --quiet --json r.json 2>err
  [ $? -le 1 ] || complain "$what: $(cat err)"
  near 0.9 1.15 "$what"
}
