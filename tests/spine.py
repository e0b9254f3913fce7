#!/usr/bin/env python3
"""Checks docs/reading_order.md: every file of core/ and autograd/ stands in it once, or lies in a folder that it names, and the
files of the spine have fewer than 10,000 lines. usage: spine.py ROOT"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
LIMIT = 10_000

text = (ROOT / "docs/reading_order.md").read_text()
spine, beside = text.split("\n## Beside the spine\n")
ENTRY = re.compile(r"^- `([\w/.]+)`", re.MULTILINE)
on_spine, listed = ENTRY.findall(spine), collections.Counter(ENTRY.findall(text))
folders = re.findall(r"`(\w+/\w+)`", beside.partition("\n\n- ")[0].partition("Folders:")[2].partition(".\n")[0])

problems = [f"{name} stands in it {count} times" for name, count in listed.items() if count > 1]
problems += [f"{name}: there is no such file" for name in listed if not (ROOT / name).is_file()]
problems += [f"{folder}: there is no such folder" for folder in folders if not (ROOT / folder).is_dir()]
for room in ["core", "autograd"]:
    for file in sorted((ROOT / room).rglob("*.*")):
        name = file.relative_to(ROOT).as_posix()
        if name not in listed and not any(name.startswith(folder + "/") for folder in folders):
            problems.append(f"{name} does not stand in it")
lines = sum(len((ROOT / name).read_text().splitlines()) for name in on_spine if (ROOT / name).is_file())
if lines >= LIMIT:
    problems.append(f"the spine has {lines} lines, and must have fewer than {LIMIT}")
print("\n".join(f"docs/reading_order.md: {problem}" for problem in problems) or f"the spine: {lines} lines in {len(on_spine)} files")
sys.exit(bool(problems))
