#!/usr/bin/env bash
# The line of progress: one line of a terminal however narrow, gone before anything else is written,
# and nothing of it where the output goes into a file.
. "$(dirname "$0")/common.sh"
python_with pty fcntl termios || exit 77
cd "$work" || exit 1
lattice=$source_dir/inputs/beta6.0_8x8x8x8.h5

cat >terminal.py <<'PY'
"""terminal.py WIDTH COMMAND...: runs it with stderr on a terminal of that width and stdout in a file; prints the
longest line of progress and how many there were, the screen's lines at the end, and the exit status. A WIDTH of
A:B changes from A to B after the second line; 0 is a terminal that tells no width. STOP=N in the environment: SIGTERM
after the N-th line."""
import fcntl, os, pty, re, signal, struct, subprocess, sys, termios

CLEAR = "\r\033[K"


def resize(terminal, width):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))


def screen(text, width):
    """Lines of the screen: a carriage return, erasing, newlines and wrapping are all that the program uses."""
    lines, column = [""], 0
    for word in re.findall(r"\033\[K|\r|\n|.", text, re.S):
        if word == "\r":
            column = 0
        elif word == "\033[K":
            lines[-1] = lines[-1][:column]
        elif word == "\n":
            lines.append("")
        else:
            if column == width:
                lines.append("")
                column = 0
            lines[-1] = lines[-1][:column].ljust(column) + word + lines[-1][column + 1:]
            column += 1
    return [line for line in lines if line.strip()]


widths = [int(w) for w in sys.argv[1].split(":")]
stop = int(os.environ.pop("STOP", 0))
terminal, end = pty.openpty()
resize(terminal, widths[0])
with open("stdout", "wb") as out:
    run = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=out, stderr=end)
os.close(end)
text = b""
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    text += part
    if len(widths) > 1 and text.count(b"\033[K") >= 2:
        resize(terminal, widths[1])
        text, widths = b"", widths[1:]  # what was drawn before is of the other width
    if stop and text.count(b"\033[K") >= stop:
        run.send_signal(signal.SIGTERM)
        stop = 0
    if not part:
        break
text = text.decode()
drawn = [part for part in text.split(CLEAR)[1:] if not part.startswith("minidirac: ")]
print(max(map(len, drawn), default=0), len(drawn), run.wait())
print("\n".join(screen(text, widths[-1] or 80)))
PY

# drawn WIDTH MOST COMMAND...: lines of progress are drawn, none longer than MOST, and none is left.
drawn() {
  local width=$1 most=$2 longest lines status
  shift 2
  python3 terminal.py "$width" timeout 120 "$minidirac" "$@" >seen
  read -r longest lines status <seen
  [ "$status" = 0 ] || complain "'$*' on $width columns: exit $status, $(tail -n +2 seen)"
  [ "$lines" -gt 0 ] || complain "'$*' on $width columns: no line of progress"
  [ "$longest" -le "$most" ] || complain "'$*' on $width columns: a line of $longest"
  [ -z "$(tail -n +2 seen)" ] || complain "'$*' on $width columns leaves: $(tail -n +2 seen)"
}

chain="generate --dims 8x8x8x8 --sweeps 15 --output g.h5 --force --threads 1"
modes="eigen $lattice --modes 6 --tol 1e-9 --threads 1"
study="measure --sources random:1 --threads 1"
thin="smear $lattice --action hisq --fat-out f.h5 --long-out l.h5 --threads 1"
light="solve $lattice --mass 0.0005 --source random:1 --rhs 16 --threads 1"
drawn 20 19 $chain
drawn 7 6 $light
drawn 1 0 $light
drawn 200:20 19 $light
COLUMNS=30 drawn 0 29 $light
COLUMNS= drawn 0 79 $modes
read -r longest _ <seen
[ "$longest" -gt 60 ] || complain "on a wide terminal lines are cut: $longest"
# A study says which lattice it is at and what is left of all, also where the rest does not fit.
cp $lattice a.h5
on 1 generate --dims 8x8x8x8 --start hot -o b.h5 --quiet
sed 's/^print(max.*/print(drawn[-1])/' terminal.py >last.py
python3 last.py 60 "$minidirac" $study --lattices 'a.h5 b.h5' --masses 0.001 --output t.h5 >seen
head -1 seen | grep -qE '^measure: lattice 2 of 2, [0-9.]+ s, about [0-9]+ s left' || complain "a study says: $(cat seen)"
python3 terminal.py 80 "$minidirac" $light --progress never >seen
[ "$(head -1 seen)" = "0 0 0" ] || complain "--progress never: $(cat seen)"
python3 terminal.py 80 "$minidirac" $light --progress always >seen
[ "$(head -1 seen)" = "0 0 0" ] && sed -n 2p seen | grep -q '^solve: iteration' || complain "--progress always: $(cat seen)"
drawn 20 19 bench gemm --square 300:340:4 --kernels cpu_tiled --repeat 3 --threads 1

# What ends a run stands on a line of its own.
for width in 20 40 200; do
  STOP=2 python3 terminal.py $width timeout 120 "$minidirac" $light --max-iter 1000000 --tol 1e-20 >seen
  [ "$(sed -n 1p seen | cut -d' ' -f3)" = 3 ] || complain "SIGTERM on $width columns: $(cat seen)"
  sed -n 2p seen | grep -q '^minidirac: error: ' || complain "SIGTERM on $width columns: $(cat seen)"
done

# Into files: text without any control character but the newline.
for words in "$chain" "$light" "$modes" "$study --lattices $lattice --masses 0.02 --output s.h5" "$thin"; do
  on 1 $words >out 2>err || complain "'$words': exit $?, $(cat err)"
  cat out err | LC_ALL=C tr -d '\n' | LC_ALL=C grep -q '[[:cntrl:]]' && complain "'$words' writes control characters"
  [ -s err ] && complain "'$words' has on stderr: $(head -3 err)"
done
finish
