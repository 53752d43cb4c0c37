#!/usr/bin/env bash
# Bad usage and bad input of the program: one line that says rule and value, exit 2 or 3, on one
# and on several ranks, nothing overwritten.
. "$(dirname "$0")/common.sh"
lattice=$work/lattice.h5
on 1 generate --dims 4x4x4x4 --start hot --seed 1 --output "$lattice" --quiet || complain "generate: exit $?"
s="solve --lattice $lattice --mass 0.1"

refuses 2 "option '--nonsense'" 1 $s --nonsense 1
refuses 2 "argument 'stray'" 1 $s stray
refuses 2 '--tol needs a value' 1 $s --tol
refuses 2 '--mass must be a finite decimal number, got .heavy.' 1 solve --lattice "$lattice" --mass heavy
refuses 2 '--mass must be a finite decimal number, got .nan.' 1 solve --lattice "$lattice" --mass nan
refuses 2 '--mass must lie in' 1 solve --lattice "$lattice" --mass 0
refuses 2 '--mass must lie in .* got -0.5' 1 solve --lattice "$lattice" --mass -0.5
refuses 2 '--mass must lie in 1e-06 to 100, got 200' 1 solve --lattice "$lattice" --mass 200
refuses 2 'needs --mass' 1 solve --lattice "$lattice"
refuses 2 'needs --lattice' 1 solve --mass 0.1
refuses 2 '--tol must lie in' 1 $s --tol 0
refuses 2 '--tol must lie in' 1 $s --tol 2
refuses 2 '--max-iter must be an integer' 1 $s --max-iter many
refuses 2 '--max-iter must lie in' 1 $s --max-iter 0
refuses 2 '--rhs' 1 $s --rhs 0
refuses 2 'have 3 right-hand sides' 1 $s --rhs 4
refuses 2 '--precision must be one of' 1 $s --precision quarter
refuses 2 'does not serve precision half' 1 $s --backend cpu_ref --precision half
refuses 2 '--backend must be one of auto.cpu_ref' 1 $s --backend gpu
refuses 2 '--source must be' 1 $s --source point:1,2
refuses 2 'must lie on the lattice, 0 to 3 in direction z, got 9' 1 $s --source point:0,0,9,0
refuses 2 '--resume needs --checkpoint' 1 $s --resume
printf 'colour = red\n' >"$work/unknown.ini"
refuses 2 "unknown.ini, line 1: solve does not know the key 'colour'" 1 solve --config "$work/unknown.ini"
# What only a line may hold is not suggested.
printf 'config = x\n' >"$work/config.ini"
refuses 2 "does not know the key 'config'; see minidirac solve --help$" 1 solve --config "$work/config.ini"
printf '[generate]\nmass = 0.1\n' >"$work/section.ini"
refuses 2 'section .generate.' 1 solve --config "$work/section.ini"
printf 'no equals sign\n' >"$work/broken.ini"
refuses 2 'line 1' 1 solve --config "$work/broken.ini"

# A shell may make a deck; what is no text file, or has no end, is none.
on 1 $s --quiet --config <(echo tol = 1e-2; sleep 0.2; echo max-iter = 500) || complain "a deck of a shell: exit $?"
on 1 $s --quiet --config <(true) || complain "an empty deck of a shell: exit $?"
refuses 2 'deck .* is longer than 65535 bytes' 1 $s --config <(yes 'tol = 1')
refuses 2 'deck /dev/null must be a file or a pipe, it is a device' 1 $s --config /dev/null
refuses 2 "deck $work must be a file or a pipe, it is a directory" 2 $s --config "$work"

# Too few open files are nobody's file: not exit 2. Of MPI, which takes most, a start without help.
few=0
for limit in $(seq 10 18); do
  (ulimit -n "$limit"; OMPI_MCA_ess_singleton_isolated=1 timeout 60 "$minidirac" $s --quiet >"$work/out" 2>"$work/err")
  got=$?
  [ $got != 2 ] || complain "ulimit -n $limit: exit 2: $(cat "$work/err")"
  grep -q '^minidirac: error: .*Too many open files' "$work/err" && few=$((few + 1))
done
echo "$few limits were low enough to be told"

(ulimit -f 100; refuses 3 'no process to read it: File too large; raise the limit \(ulimit -f\)' 1 info "$lattice"; exit $failures)
[ $? = "$failures" ] || complain "the limit of file sizes is not named"

# MILC lattices are written by their suffix too.
on 1 convert "$lattice" "$work/l.milc" --quiet 2>"$work/err" || complain "suffix .milc: $(cat "$work/err")"
grep -q 'single precision' "$work/err" || complain "suffix .milc: not a word of the precision"
on 1 info "$work/l.milc" --quiet --json - 2>/dev/null | grep -q '"format":.*"milc"' || complain "suffix .milc is no MILC file"
refuses 2 "the format must be named, the suffix of .*l.odd' tells none; end it in .h5, .lime or .ildg" 1 convert "$lattice" "$work/l.odd"

for ranks in 1 2; do
  refuses 2 "'nonsense' is not known" $ranks nonsense
  refuses 2 '--tol is given twice' $ranks $s --tol 1e-3 --tol 1e-4
  refuses 2 'must lie on the lattice' $ranks $s --source wall:-1
  refuses 2 '--grid must be four integers' $ranks $s --grid 2x2
  refuses 2 'valid rank grids:' $ranks $s --grid 4x1x1x1
  refuses 2 'lattice-that-is-not-there' $ranks solve --lattice "$work/lattice-that-is-not-there" --mass 0.1
  refuses 2 '' $ranks solve --lattice "$work" --mass 0.1
  refuses 2 'deck .*missing.ini' $ranks solve --config "$work/missing.ini"
  printf 'mass = 0.1\nmass = 0.2\n' >"$work/twice.ini"
  refuses 2 "'mass' is given twice" $ranks solve --config "$work/twice.ini"
  refuses 2 'must be one of auto, mpi, peer, mixed, nccl, cuda_aware, staged' $ranks $s --transport pigeon
  refuses 2 'transport peer does not carry fields that lie on the host' $ranks $s --backend cpu_simd --transport peer
  refuses 3 'cannot be' $ranks $s --quiet --json /nowhere/report.json
done
refuses 2 'valid rank grids: none' 3 $s
refuses 2 "json must be a file, but /dev/full is a device; '-' is standard output" 1 $s --quiet --json /dev/full
on 1 $s --json - 2>"$work/err" >/dev/full
[ $? = 3 ] || complain "a full standard output: not exit 3"
grep -q 'standard output cannot be written: No space left' "$work/err" || complain "$(cat "$work/err")"
on 1 $s --json "$work/full.json" 2>"$work/err" >/dev/full
grep -qE 'standard output cannot be written: (No space left|earlier lines of it are lost)' "$work/err" || complain "a full standard output, a report: $(cat "$work/err")"
# So are standard descriptors that are closed, and what a library opens does not get their numbers.
on 1 info "$lattice" --json - 2>"$work/err" <&- >&-
[ $? = 3 ] || complain "a closed standard output: not exit 3"
grep -q 'standard output cannot be written: Bad file' "$work/err" || complain "a closed standard output: $(cat "$work/err")"
on 1 $s --quiet --json "$work/closed.json" <&- >&- 2>&- || complain "closed descriptors that are not needed: exit $?"

# What is wrong on one rank alone ends all at once; what measurements wish for is that of rank 0.
cat >"$work/one" <<S
#!/usr/bin/env bash
[ "\${OMPI_COMM_WORLD_RANK:-0}" != "\$RANK" ] || eval "\$SETTING"
exec "$minidirac" "\$@"
S
chmod +x "$work/one"
program=$minidirac minidirac=$work/one
export RANK=1
SETTING='export OMP_NUM_THREADS=100000' refuses 2 "OMP_NUM_THREADS must be .* got '100000'" 2 $s --quiet
SETTING='export OMP_NUM_THREADS=2 OMP_STACKSIZE=1000000G' refuses 3 'rank 1 must have 2 threads, but' 2 $s --quiet
SETTING='set -- "$@" --tol 1e-3' refuses 2 "same arguments, but rank 1 has '--tol' where" 2 $s --quiet
SETTING='set -- info' refuses 2 "rank 1 has 'info' where rank 0 has 'solve'" 2 $s --quiet
SETTING='export MINIDIRAC_RECORD=perhaps MINIDIRAC_TEST_GPU=few' on 2 $s --quiet || complain "rank 1 wishes: exit $?"
RANK=0
SETTING='export MINIDIRAC_RECORD=perhaps' refuses 2 "RECORD must be always or never, got 'perhaps'" 2 $s --quiet
SETTING='export MINIDIRAC_TEST_NODE_SIZE=-1' refuses 2 "NODE_SIZE must be an integer from 0 .* got '-1'" 1 $s --quiet
SETTING='export MINIDIRAC_TEST_GPU=108,163,40,80,1' refuses 2 "TEST_GPU must be MULTI.* got '108,163,40,80,1'" 2 $s --quiet
minidirac=$program

# A report that cannot be written leaves the old one.
echo old >"$work/report.json"
(ulimit -f 0; on 1 $s --quiet --json "$work/report.json" >/dev/null 2>&1)
[ "$(cat "$work/report.json")" = old ] || complain "an unwritable report lost the old file"
finish
