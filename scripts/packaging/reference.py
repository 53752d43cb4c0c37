#!/usr/bin/env python3
"""reference.py man|bash MINIDIRAC: the man page, or bash completion, from what --help prints, which is made from the
tables of options. Writes to standard output."""
import os
import re
import subprocess
import sys


def help_of(program, words):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"reference.py: {' '.join([program, *words])} --help failed: {done.stderr.strip()}")
    return done.stdout.splitlines()


def commands_of(lines):
    return [(m[1], m[2]) for m in (re.match(r"^  ([a-z]+) +(\S.*)$", line) for line in lines) if m]


def options_of(lines):
    """(word as given, argument, text) of each line of a table."""
    options = []
    for line in lines:
        flag = re.match(r"^  (?:-(\w), )? *(--[\w-]+|[A-Z_]+)(?: (\S+))?(?: +(\S.*))?$", line)
        if flag:
            options.append((flag[1], flag[2], flag[3] or "", flag[4] or ""))
        elif options and line.startswith(" " * 30):  # the text goes on, or begins, on a line of its own
            options[-1] = (*options[-1][:3], f"{options[-1][3]} {line.strip()}".strip())
    return options


def all_commands(program):
    """(words, summary, lines of --help) of every command; of `bench`, of every kind."""
    for name, summary in commands_of(help_of(program, [])):
        lines = help_of(program, [name])
        kinds = commands_of(lines) if lines and "KIND" in lines[0] else []
        if kinds:
            for kind, text in kinds:
                yield [name, kind], text, help_of(program, [name, kind])
        else:
            yield [name], summary, lines


def escape(text):
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))


def man(program, out):
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()
    out(f'.TH MINIDIRAC 1 "" "miniDirac {version[1]}" "User Commands"')
    out(".SH NAME\nminidirac \\- staggered Dirac operators, solvers and their rounding on CPUs and GPUs")
    out(".SH SYNOPSIS\n.B minidirac\n.I COMMAND\n[options]\n.br\n.B mpirun \\-n\n.I N\n.B minidirac\n.I COMMAND\n[options]")
    for words, summary, lines in all_commands(program):
        out(f'.SH "{" ".join(words).upper()}"\n{escape(summary)}.')
        for short, word, argument, text in options_of(lines):
            name = f"\\-{short}, {escape(word)}" if short else escape(word)
            value = f" \\fI{escape(argument)}\\fR" if argument else ""
            out(f".TP\n.B {name}{value}\n{escape(text)}")
        end = max((i for i, line in enumerate(lines) if line.startswith("  --help")), default=len(lines))
        details = [line for line in lines[end + 1:] if line.strip()]
        if details:
            out(".PP\n.nf\n" + "\n".join(escape(line) for line in details) + "\n.fi")
    out(".SH EXIT STATUS\n0 success, 1 the asked result was not reached, 2 bad usage or input, 3 environment (device, MPI, "
        "memory, disk).")


def bash(program, out):
    table, values, top, kinds = [], [], [], {}
    for words, _, lines in all_commands(program):
        flags = [(word, argument) for _, word, argument, _ in options_of(lines) if word.startswith("--")]
        table.append((" ".join(words), " ".join(word for word, _ in flags)))
        values += [(f"{' '.join(words)} {word}", argument.replace("|", " ")) for word, argument in flags if "|" in argument]
        if words[0] not in top:
            top.append(words[0])
        if len(words) > 1:
            kinds.setdefault(words[0], []).append(words[1])
    out("_minidirac() {\n  local word=${COMP_WORDS[COMP_CWORD]} key=${COMP_WORDS[1]} choices=\n  COMPREPLY=()")
    out(f'  if [ "$COMP_CWORD" = 1 ]; then\n    choices="{" ".join(top)} --help --version"')
    for name, words in kinds.items():
        out(f'  elif [ "$COMP_CWORD" = 2 ] && [ "$key" = {name} ]; then\n    choices="{" ".join(words)} --help"')
    out("  else")
    for name in kinds:
        out(f'    [ "$key" = {name} ] && key="$key ${{COMP_WORDS[2]}}"')
    out('    [[ $word == -* ]] && case "$key" in')
    for key, flags in table:
        out(f'    "{key}") choices="{flags}" ;;')
    out('    esac\n    case "$key ${COMP_WORDS[COMP_CWORD - 1]}" in')
    for key, words in values:
        out(f'    "{key}") choices="{words}" ;;')
    out('    esac\n  fi\n  COMPREPLY=($(compgen -W "$choices" -- "$word"))\n}')
    out("complete -o default -F _minidirac minidirac")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("man", "bash"):
        print(__doc__)
        sys.exit(0 if "--help" in sys.argv else 2)
    {"man": man, "bash": bash}[sys.argv[1]](sys.argv[2], print)


if __name__ == "__main__":
    main()
