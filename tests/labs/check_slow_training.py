#!/usr/bin/env python3
"""Checks the training of docs/slow_training.md: it starts, is told that it is too slow for the same numbers, and what takes the
time; the mended program passes; a profile shows each flaw that is planted in that. How many times as long a flaw takes is
printed and is not asserted: it depends on the machine and on what else that does.
usage: check_slow_training.py ROOT BUILD

Two of the flaws are planted, or as many as RUSH_LAB_MISTAKES says, a number or all."""
import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

TARGET = "3"  # of the mended program itself, which a busy machine delays in one run and not in the other

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / "tests/labs/mistakes"))
from sample import sampled

loader = importlib.machinery.SourceFileLoader("slow_training", str(ROOT / "tools/slow_training"))
slow_training = importlib.util.module_from_spec(importlib.util.spec_from_loader("slow_training", loader))
sys.modules["slow_training"] = slow_training
loader.exec_module(slow_training)

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
    """(kind, text, program): # is a flaw and what a profile has to show, ! a mistake and what has to be said, and of ~ only the
    numbers are checked, since a profile shows it by time alone."""
    for block in re.split(r"\n\n+", (ROOT / "tests/labs/mistakes/slow_training.flaws").read_text().strip()):
        lines = block.splitlines()
        yield lines[0][0], lines[0][2:], flawed(mended, lines[1:])


def excess(what):
    """How many calls of an operator, or MiB of a kind of memory, the reader's program has more than the mended one."""
    calls, kind = re.fullmatch(r"(calls|MiB) of (\S+)", what).groups()
    (operators, memory), (mended_operators, mended_memory) = map(
        slow_training.profile, (pathlib.Path(scratch.name) / "slow_training", BUILD / "bin/rush_slow_training"))
    if calls == "MiB":
        return memory.get(kind, 0) - mended_memory.get(kind, 0)
    return operators.get(kind, (0, 0))[1] - mended_operators.get(kind, (0, 0))[1]


def expect_flaw(text):
    flaw, least, what = re.fullmatch(r"(.*): (\d+) (.*)", text).groups()
    expect(flaw, None, "right  the numbers")
    if not (shown := excess(what)) >= int(least):
        problems.append(f"{flaw}: a profile shows {shown} more {what} than that of the mended program, and {least} were planted")


status, output = tool()
if status or readers.read_text() != (ROOT / "docs/labs/slow_training.cpp").read_text():
    problems.append(f"it does not start: {output}")
expect("the slow program", 1, "right  the numbers of every epoch", "it has to take at most", "are activations", "LinearBackward")

mended = (ROOT / "tests/labs/solutions/slow_training.cpp").read_text()
readers.write_text(mended)
expect("the mended program", 0, "passed", arguments=("--most-times", TARGET))

planted = list(flaws())
sample = sampled(planted, 2)
for kind, text, program in sample:
    readers.write_text(program)
    if kind == "#":
        expect_flaw(text)
    elif kind == "!":
        expect(text, 1, text)
    else:
        expect(text, None, "right  the numbers")

print("\n".join(problems) or f"{len(sample)} of {len(planted)} flaws, planted, are shown")
sys.exit(bool(problems))
