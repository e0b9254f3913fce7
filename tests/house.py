#!/usr/bin/env python3
"""Checks the layout that docs/design.md promises: which room includes which, how many files a folder has, that CUDA
and Eigen are named where they belong, and that helpers of tests, which are compiled several at a time, have names of their
own in their folder. usage: house.py ROOT"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
MOST_FILES = 45
MAY_INCLUDE = {
    "core": {"core"},
    "backends": {"core", "backends"},
    "autograd": {"core", "autograd"},
    "nn": {"core", "backends", "autograd", "nn"},
    "optim": {"core", "backends", "autograd", "nn", "optim"},
}
SOURCES = {".h", ".cpp", ".cu", ".inc"}
# Of these folders of tests every source is a program or a library by itself.
COMPILED_ALONE = re.compile(r"tests/(conformance|debug|distributed|fuzz|labs|outside|package|programs|torch_programs)\b")
HELPER = re.compile(
    r"(?:struct|class|enum(?: class)?) (?P<type>\w+)"
    r"|(?:inline |static )?(?:constexpr|const) [^(=]*?\b(?P<constant>\w+)(?:\[\w*\])? ?[={]"
    r"|[\w:][\w:<>,&* ]*[ &*](?P<function>\w+\([^;]*\)) ?(?:noexcept )?\{")
MAY_NAME_CUDA = {"core/device/device_type.h"}  # beside backends/

NAMESPACE = re.compile(r"namespace(?: ([\w:]+))? \{")
CONSTANT = re.compile(r"(?:constexpr|const) [^(=]*?\b(\w+)(?:\[\w*\])? ?[={]")
problems = []
counts = collections.Counter()
helpers = collections.defaultdict(set)  # the tests that define it, by folder and name
# A folder's sources are compiled several at a time: a constant of an inner namespace would hide another source's.
constants = collections.defaultdict(dict)  # a source that defines it, by folder and name, by namespace
for room in [*MAY_INCLUDE, "tests", "examples", "benchmarks", "docs", "tools", "compat"]:
    for file in sorted((ROOT / room).rglob("*")):
        if not file.is_file() or "__pycache__" in file.parts:
            continue
        name = file.relative_to(ROOT).as_posix()
        counts[name.rpartition("/")[0]] += 1
        if room == "tests" and file.suffix == ".cpp" and not COMPILED_ALONE.match(name):
            for line in file.read_text().splitlines():
                helper = HELPER.match(line)
                if helper:  # of a function, overloads may share a name: its parameters' types count, their names do not
                    defined = re.sub(r" ?\b\w+(?=[,)])", "", helper[helper.lastgroup])
                    helpers[name.rpartition("/")[0], defined].add(file.name)
        if room not in MAY_INCLUDE or file.suffix not in SOURCES:
            continue
        around = []
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if opened := NAMESPACE.match(line):
                around.append(opened[1])
            elif line.startswith("}  // namespace"):
                around.pop()
            elif file.suffix == ".cpp" and None in around and (constant := CONSTANT.match(line)):
                constants[name.rpartition("/")[0], constant[1]][tuple(around)] = file.name
            included = re.match(r'#include "(\w+)/', line)
            if included and included[1] in MAY_INCLUDE and included[1] not in MAY_INCLUDE[room]:
                problems.append(f"{name}:{number}: {room} may not include {included[1]}")
            if line == '#include "rushlight.h"':
                problems.append(f"{name}:{number}: includes all rooms at once")
            if re.match(r"#include <(Eigen|unsupported)/", line) and not name.startswith("backends/cpu/linalg/"):
                problems.append(f"{name}:{number}: Eigen belongs in backends/cpu/linalg")
            code = line.partition("//")[0]
            if room != "backends" and name not in MAY_NAME_CUDA and re.search("cuda", code, re.IGNORECASE):
                problems.append(f"{name}:{number}: CUDA is named outside of its facade: {line.strip()}")
problems += [f"{folder}: {count} files, more than {MOST_FILES}" for folder, count in counts.items() if count > MOST_FILES]
problems += [f"{folder}: {' and '.join(sorted(files))} both define {helper}"
             for (folder, helper), files in helpers.items() if len(files) > 1]
problems += [f"{folder}: {' and '.join(sorted(sources.values()))} define {constant} in different namespaces"
             for (folder, constant), sources in constants.items() if len(sources) > 1]
print("\n".join(problems) or f"{sum(counts.values())} files in {len(counts)} folders, at most {max(counts.values())} in one")
sys.exit(bool(problems))
