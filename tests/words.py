#!/usr/bin/env python3
"""Checks that comments use the field's words. docs/glossary.md explains the coined ones.
usage: words.py ROOT"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
ROOMS = ["core", "backends", "autograd", "nn", "optim", "compat"]
SOURCES = {".h", ".cpp", ".cu", ".inc"}
# A phrase that readers stumble over: what to write instead.
INSTEAD = {
    r"stretch(es)?": "chunk, or contiguous range",
    r"pieces?": "chunk, block or frame",
    r"whoever": "name the caller, owner or thread",
    r"somebody|anybody": "name the caller, owner or thread",
    r"what is left (of|in)": "the remainder",
    r"(sees?|saw) to (it|them|that|this|both)": "ensures, or handles",
    r"as (it|they) lies?": "with its strides, or contiguous",
    r"takes? no notice": "ignores",
    r"(left|right) factors?": "A and B operand, or fragment",
    r"two by two": "in pairs",
    r"but for": "except",
    r"anew": "again",
    r"hence": "therefore",
    r"in vain": "wasted",
    r"makes? way": "is evicted",
    r"(?<!ReLU)'s slope": "derivative",
    r"the sums? along": "name the sum, for example delta",
    r"first-level cache": "L1 cache",
}
BANNED = re.compile(r"\b(?:" + "|".join(f"(?P<w{i}>{phrase})" for i, phrase in enumerate(INSTEAD)) + r")\b", re.IGNORECASE)
ADVICE = list(INSTEAD.values())
STRING = re.compile(r'"(?:\\.|[^"\\])*"')


def comments(text):
    """The comments of a file, as (number of the first line, text): neighbouring comment lines are one comment."""
    start, words = 0, []
    for number, line in enumerate(text.splitlines(), 1):
        code, slashes, comment = STRING.sub('""', line).partition("//")
        if words and (not slashes or code.strip()):
            yield start, " ".join(words)
            words = []
        if slashes:
            start = start if words else number
            words.append(comment.strip(" /"))
    if words:
        yield start, " ".join(words)


problems = []
files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*")) if file.suffix in SOURCES]
for file in files:
    for number, comment in comments(file.read_text()):
        for found in BANNED.finditer(comment):
            advice = ADVICE[int(found.lastgroup[1:])]
            problems.append(f'{file.relative_to(ROOT)}:{number}: "{found[0]}" in a comment: write {advice}')
print("\n".join(problems) or f"{len(files)} files use the field's words")
sys.exit(bool(problems))
