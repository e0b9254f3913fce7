#!/usr/bin/env python3
"""Checks a capstone's rubric, that of an operator or that of a training: the skeleton compiles, gets no more than its points for that, and is told what to do first; the worked
solution gets all points; of weaknesses that are planted in it, each costs exactly its items.
usage: check_capstone.py ROOT BUILD (capstone | training)

One of the weaknesses is planted, or as many as RUSH_LAB_MISTAKES says, a number or all."""
import pathlib
import re
import resource
import shutil
import subprocess
import sys

MOST_SECONDS = 2 * 20  # of processors, from an edit to the verdict

ROOT, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
KIND = sys.argv[3]
# The worked solution's name and folder, the tool, the points of a skeleton, and the items without which there is no pass.
NAME, FOLDER, TOOL, FOR_SKELETON, MUSTS = {
    "capstone": ("gated_rms_norm", "solution", "capstone", 5, {"build", "schema", "values", "gradient", "fused", "tests"}),
    "training": ("quadrants", "training", "training_capstone", 10, {"build", "learns", "losses", "restart"}),
}[KIND]
HERE, SOLUTION = ROOT / "tests/labs/capstone", ROOT / "tests/labs/capstone" / FOLDER
SCRATCH = BUILD / f"labs/{KIND}_test"  # stays, so that what has not changed is not compiled again
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / "tests/labs/mistakes"))
from sample import sampled

problems = []


def capstone(name, *options):
    """Status, output and a processor's seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [ROOT / "tools" / TOOL, ROOT, BUILD, NAME, "--folder", SCRATCH / name, "--keep-in", SCRATCH / f"{name}_build"]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.returncode, done.stdout + done.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def lost_items(output):
    return {name for points, most, name in re.findall(r"^ *(\d+)/(\d+)  (\S+)", output, re.M) if points != most}


def copy_to(folder, texts):
    """Writes these texts, by the names of their files. A file that stays as it was keeps its time, and is not compiled again."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        copy = folder / name
        if not copy.exists() or copy.read_text() != text:
            copy.write_text(text)


def texts_in(folder):
    return {file.name: file.read_text() for file in folder.iterdir()}


def write_solution(changes=()):
    """The solution after (file, old, new) changes."""
    texts = texts_in(SOLUTION)
    for file, old, new in changes:
        if texts[file].count(old) != 1:
            problems.append(f"these lines stand {texts[file].count(old)} times in {file}:\n{old}")
        texts[file] = texts[file].replace(old, new)
    copy_to(SCRATCH / "solution", texts)


def weaknesses():
    """(name, changes, lost items) of each."""
    for part in re.split(r"\n\n+(?=# )", (HERE / f"{KIND}.weaknesses").read_text().strip()):
        name, file, *lines = part.splitlines()
        changes = [(file[2:], *("\n".join(line[1:] for line in hunk.splitlines() if line[0] == mark) for mark in "-+"))
                   for hunk in re.findall(r"(?:^-.*\n)+(?:^\+.*\n)+", "\n".join(lines) + "\n", re.M)]
        yield name[2:], changes, set(lines[-1][2:].split())


def expect(what, lost):
    """Grades the solution as it was written: it loses exactly these items. A second time where it does not, since others use the
    machine while it is timed."""
    slowest = 0.0
    for _ in range(2):
        status, output, seconds = capstone("solution", "--check")
        slowest = max(slowest, seconds)
        got = lost_items(output)
        if got == lost:
            break
    print(f"{slowest:5.1f} s  {what}: {', '.join(sorted(got)) or 'all points'}", flush=True)
    if got != lost:
        problems.append(f"{what}: lost {sorted(got)}, expected {sorted(lost)}; said:\n{output}")
    if status != bool(got & MUSTS):
        problems.append(f"{what}: status {status}; said:\n{output}")
    return slowest


def check_start():
    shutil.rmtree(SCRATCH / "started", ignore_errors=True)
    status, output, _ = capstone("started")
    if status or "it says of each item of the rubric what is to do" not in output:
        problems.append(f"it does not start: {output}")
    copy_to(SCRATCH / "skeleton", texts_in(SCRATCH / "started"))
    status, output, seconds = capstone("skeleton")
    print(f"{seconds:5.1f} s  the skeleton", flush=True)
    if status != 1 or not re.search(rf"^{FOR_SKELETON} of 100 points", output, re.M) or "begin here: " not in output:
        problems.append(f"the skeleton: status {status}; said:\n{output}")


before = sorted(ROOT.rglob("docs/labs/**/*")), sorted(SOLUTION.iterdir()), sorted(ROOT.iterdir())
check_start()
write_solution()
expect("the worked solution", set())
planted = list(weaknesses())
if len(planted) < 8:
    problems.append(f"{len(planted)} weaknesses, fewer than eight")
slowest = 0.0
for name, changes, lost in (sample := sampled(planted, 1)):
    write_solution(changes)
    slowest = max(slowest, expect(name, lost))
if slowest > MOST_SECONDS:
    problems.append(f"a verdict took {slowest:.1f} s of processors, and must take less than {MOST_SECONDS}")
if before != (sorted(ROOT.rglob("docs/labs/**/*")), sorted(SOLUTION.iterdir()), sorted(ROOT.iterdir())):
    problems.append("the tree has changed")
print("\n".join(problems) or f"{len(sample)} of {len(planted)} weaknesses, planted, cost their items; the slowest verdict took {slowest:.1f} s")
sys.exit(bool(problems))
