#!/usr/bin/env python3
"""Checks the training of docs/slow_training.md: it starts, takes several times the processor's seconds of the mended program
for the same numbers, and is told so; the mended program passes; flaws that are planted in that are found.
usage: check_slow_training.py ROOT BUILD

Two of the flaws are planted, or as many as RUSH_LAB_MISTAKES says, a number or all."""
import pathlib
import re
import subprocess
import sys
import tempfile

LEAST_TIMES = 4  # as slow as the mended program; it is 15 where nothing else runs
TARGET = "1.4"  # of the mended program itself, wider than a reader's

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / "tests/labs/mistakes"))
from sample import sampled

problems = []
scratch = tempfile.TemporaryDirectory(prefix="rush_slow_")
readers = pathlib.Path(scratch.name) / "slow_training.cpp"


def tool(*arguments):
    command = [ROOT / "tools/slow_training", ROOT, BUILD, "--file", readers, "--keep-in", scratch.name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def expect(what, status, *texts, arguments=()):
    """Checks the reader's file: the verdict has this status, or any where that is None, and says all of these."""
    got, output = tool(*arguments)
    times = re.search(r"([\d.]+) times as many\n", output)
    print(f"{what}: {times[1] if times else '-'} times", flush=True)
    missing = [text for text in texts if text not in output]
    if status not in {got, None} or missing:
        problems.append(f"{what}: status {got}, expected {status}; not said: {missing}; said:\n{output}")
    return float(times[1]) if times else 0


def flawed(program, changes):
    """The program after changes of old lines, which begin with -, to new ones, which begin with +."""
    hunks = []
    for line in changes:
        if line[0] == "-" and (not hunks or hunks[-1]["+"]):
            hunks.append({"-": [], "+": []})
        hunks[-1][line[0]].append(line[1:])
    for hunk in hunks:
        old, new = "\n".join(hunk["-"]), "\n".join(hunk["+"])
        if program.count(old) != 1:
            problems.append(f"these lines stand {program.count(old)} times in the mended program:\n{old}")
        program = program.replace(old, new)
    return program


def flaws():
    """(kind, text, program): # has to be found too slow, ! has to be told the text, and of ~ only the numbers are checked, since
    alone it costs less than the target leaves."""
    for block in re.split(r"\n\n+", (ROOT / "tests/labs/mistakes/slow_training.flaws").read_text().strip()):
        lines = block.splitlines()
        yield lines[0][0], lines[0][2:], flawed(mended, lines[1:])


status, output = tool()
if status or readers.read_text() != (ROOT / "docs/labs/slow_training.cpp").read_text():
    problems.append(f"it does not start: {output}")
times = expect("the slow program", 1, "right  the numbers of every epoch", "it has to take at most", "are activations", "LinearBackward")
if times < LEAST_TIMES:
    problems.append(f"the slow program takes {times} times the mended one's seconds, fewer than {LEAST_TIMES}")

mended = (ROOT / "tests/labs/solutions/slow_training.cpp").read_text()
readers.write_text(mended)
expect("the mended program", 0, "passed", arguments=("--most-times", TARGET))

planted = list(flaws())
sample = sampled(planted, 2)
for kind, text, program in sample:
    readers.write_text(program)
    said = {"#": ["right  the numbers", "it has to take at most"], "!": [text], "~": ["right  the numbers"]}[kind]
    expect(text, None if kind == "~" else 1, *said)

print("\n".join(problems) or f"{len(sample)} of {len(planted)} flaws, planted, are found")
sys.exit(bool(problems))
