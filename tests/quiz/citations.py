#!/usr/bin/env python3
"""Holds docs/quiz.md to its form and to the tree: the questions are numbered, a choice is right, what an answer cites is there,
and tests/quiz/answers.cpp has a case for each question that is said to be proven, and for no other. usage: citations.py ROOT"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
EXPECTED = 50
FEWEST_PROVEN = 25
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import quiz  # noqa: E402

try:
    questions = quiz.read_questions(ROOT)
except ValueError as error:
    sys.exit(str(error))
problems = []


def say(question, problem):
    problems.append(f"question {question.number}: {problem}")


if [question.number for question in questions] != list(range(1, EXPECTED + 1)):
    problems.append(f"expected questions 1 to {EXPECTED} in order")

for question in questions:
    letters = "".join(letter for letter, _ in question.choices)
    if letters != "ABCD"[: len(letters)] or len(letters) in {1, 2}:
        say(question, f"expected the choices A to C or D, or none; got {letters}")
    if bool(letters) != bool(question.right) or question.right not in letters:
        say(question, f"the right choice is '{question.right}', of '{letters}'")
    if not question.citations:
        say(question, "the answer cites no file")
    for name, notes in question.citations:
        file = ROOT / name
        if not file.is_file():
            say(question, f"there is no file {name}")
            continue
        source = file.read_text()
        for note in notes:
            if not re.search(rf"^\s*// Note \[{re.escape(note)}\]$", source, re.M):
                say(question, f"{name} does not hold Note [{note}]")

tests = re.findall(r'^TEST_CASE\("question (\d+): ', (ROOT / quiz.TESTS).read_text(), re.M)
proven = [str(question.number) for question in questions if question.proven]
for number, count in collections.Counter(tests).items():
    if count > 1:
        problems.append(f"question {number}: {quiz.TESTS} has {count} cases")
for number in sorted(set(proven) ^ set(tests), key=int):
    problems.append(f"question {number}: " + ("is said to be proven and has no case" if number in proven
                                              else "has a case, which the answer does not name"))
if len(proven) < FEWEST_PROVEN:
    problems.append(f"{len(proven)} questions are proven, fewer than {FEWEST_PROVEN}")

print("\n".join(f"{quiz.PAGE}: {problem}" for problem in problems) or f"{len(questions)} questions, {len(proven)} proven by a test")
sys.exit(bool(problems))
