#!/usr/bin/env python3
"""Checks a lab: its starting file fails and says what to do first, the library's file passes, planted mistakes are caught by
their names, what breaks a check is reported, hints come in three steps, and a verdict takes less than 20 seconds of two cores.
usage: check_lab.py ROOT BUILD LAB

One of the mistakes is planted, or as many as RUSH_LAB_MISTAKES says, a number or all."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile

MOST_SECONDS = 2 * 20  # of processors, since what else a machine does is no lab's fault

ROOT, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
loader = importlib.machinery.SourceFileLoader("lab", str(ROOT / "tools/lab"))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("lab", loader))
sys.modules["lab"] = tool
sys.dont_write_bytecode = True
loader.exec_module(tool)
sys.path.append(str(ROOT / "tests/labs/mistakes"))
from sample import sampled
LAB = next(lab for lab in tool.LABS if lab.number == int(sys.argv[3]))

# On two cores: threads of more, where other tests run, would take seconds of theirs for waiting.
if hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[(os.getpid() + i) % len(cores)] for i in range(2)})

problems = []
scratch = tempfile.TemporaryDirectory(prefix="rush_lab_")
learners = pathlib.Path(scratch.name) / pathlib.Path(LAB.replaces).name
slowest = 0.0


def lab(*options):
    """Status, output and a processor's seconds of `./rush lab`, once what it needs is built."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [ROOT / "tools/lab", ROOT, BUILD, str(LAB.number), "--file", learners, "--keep-in", scratch.name, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.returncode, done.stdout + done.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def expect(what, status, *texts):
    """Checks the learner's file: the verdict has this status, and says all of these."""
    global slowest
    got, output, seconds = lab()
    slowest = max(slowest, seconds)
    print(f"{seconds:5.1f} s  {what}", flush=True)
    missing = [text for text in texts if text not in output]
    if got != status or missing:
        problems.append(f"{what}: status {got}, expected {status}; not said: {missing}; said:\n{output}")
    return output


def planted():
    """(kind, text, old lines, new lines) of each change to the library's file: its kind is # where the checker has to call the
    mistake by the name that is the text, and ! where it has to say the text."""
    text = (ROOT / f"tests/labs/mistakes/{LAB.name}.mistakes").read_text()
    for block in re.split(r"\n\n+", text.strip()):
        lines = block.splitlines()
        old, new = ["\n".join(line[1:] for line in lines if line.startswith(mark)) for mark in "-+"]
        yield lines[0][0], lines[0][2:], old, new


def tree():
    """What a lab might change by mistake."""
    return [(ROOT / name).read_text() for name in [LAB.replaces, LAB.start]], sorted(ROOT.iterdir())


listed = subprocess.run([ROOT / "rush", "lab"], capture_output=True, text=True)
if listed.returncode or f" {LAB.number}  {LAB.title} " not in listed.stdout:
    problems.append(f"./rush lab does not list it: {listed.stdout}{listed.stderr}")

before = tree()
status, output, _ = lab()
if status or "it says what to do first" not in output or learners.read_text() != (ROOT / LAB.start).read_text():
    problems.append(f"the lab does not start: {output}")
output = expect("the starting file", 1, "WRONG", "it threw: begin here: ", "a breakpoint: gdb ", f"{learners.name}:")

if shutil.which("gdb"):
    command = shlex.split(re.search(r"a breakpoint: (gdb .*)", output)[1])
    stopped = subprocess.run([command[0], "-batch", *command[1:]], capture_output=True, text=True).stdout
    if not re.search(r"^Breakpoint 1[.1]*, rush::", stopped, re.M):
        problems.append(f"the breakpoint is not reached by {' '.join(command)}: {stopped}")

for number in range(1, 4):
    hint = lab("--hint")[1]
    if f"hint {number} of 3: " not in hint:
        problems.append(f"expected hint {number}, got {hint}")
if f"what the library does stands in {LAB.replaces}" not in lab("--hint")[1]:
    problems.append(f"after three hints: {lab('--hint')[1]}")

solution = (ROOT / LAB.replaces).read_text()
learners.write_text(solution)
proofs = ["the emulated grid"] if LAB.gpu_program else ["the same weights bit by bit"]
proofs += ["the library's own tests"] if LAB.tests else []
proofs += ["losses that differ from those of one rank by at most "] if LAB.processes > 1 else []
expect("the library's own file", 0, *proofs, "passed, in ")

mistakes = list(planted())
for kind, name, old, new in mistakes:
    if solution.count(old) != 1:
        problems.append(f"{name}: its old lines stand {solution.count(old)} times in {LAB.replaces}")
count = sum(kind == "#" for kind, *_ in mistakes)
if count < 5:
    problems.append(f"{count} planted mistakes, fewer than five")
sample = sampled(mistakes, 1)
for kind, name, old, new in sample:
    learners.write_text(solution.replace(old, new))
    expect(name, 1, f"a mistake known by name: {name}" if kind == "#" else name)

if slowest >= MOST_SECONDS:
    problems.append(f"a verdict took {slowest:.1f} s of processors, and must take less than {MOST_SECONDS}")
if tree() != before:
    problems.append("the tree has changed")
print("\n".join(problems) or f"lab {LAB.number}: {len(sample)} of {len(mistakes)} mistakes, planted, are caught; the slowest verdict took {slowest:.1f} s")
sys.exit(bool(problems))
