#!/usr/bin/env python3
"""Asks the questions of docs/quiz.md on a terminal; in a pipe it prints them with their answers.

usage: tools/quiz.py ROOT [NUMBER | SUBJECT] [--list] [--shuffle]

ROOT is the project's folder. SUBJECT is a heading of the page or a word of one. A question with choices wants a letter, one
without shows its answer after the return key; q ends the quiz.
"""
import argparse
import dataclasses
import pathlib
import random
import re
import shutil
import sys
import textwrap

PAGE = "docs/quiz.md"
TESTS = "tests/quiz/answers.cpp"
QUESTION = re.compile(
    r"\*\*(?P<number>\d+)\.\*\* (?P<text>.+?)\n\n"
    r"(?P<choices>(?:- [A-Z]\. [^\n]+\n(?:  [^\n]+\n)*)*)\n?"
    r"<details><summary>Answer</summary>\n\n"
    r"(?:\*\*(?P<right>[A-Z])\.\*\* )?(?P<answer>.+?)\n\n(?P<sources>Read (?:[^\n]+\n)+)\n</details>", re.S)


def joined(lines):
    return " ".join(lines.split())


@dataclasses.dataclass(frozen=True)
class Question:
    number: int
    subject: str
    text: str
    choices: tuple  # (letter, text); empty where the question is open
    right: str  # the letter; "" where the question is open
    answer: str
    sources: str  # what to read, and whether a test proves the answer

    @property
    def proven(self):
        return f"Proven in `{TESTS}`." in self.sources

    @property
    def citations(self):
        """(file, titles of the Notes that it is said to hold) of each."""
        return [(file, re.findall(r"Note \[([^\]]+)\]", after))
                for file, after in re.findall(r"`([^`]+)`([^`]*)", self.sources.partition("Proven in")[0])]


def read_questions(root):
    """In the page's order. Raises ValueError for a question that has not the form of the others."""
    questions = []
    for section in re.split(r"^## ", (root / PAGE).read_text(), flags=re.M)[1:]:
        subject, _, body = section.partition("\n")
        for entry in re.split(r"^(?=\*\*\d+\.)", body, flags=re.M)[1:]:
            found = QUESTION.fullmatch(entry.strip())
            if not found:
                raise ValueError(f"{PAGE}: cannot read the question '{entry.partition(chr(10))[0]}'")
            choices = re.findall(r"^- ([A-Z])\. (.+\n(?:  .+\n)*)", found["choices"], re.M)
            questions.append(Question(
                int(found["number"]), subject, joined(found["text"]), tuple((letter, joined(text)) for letter, text in choices),
                found["right"] or "", joined(found["answer"]), joined(found["sources"])))
    return questions


def show(text, indent=""):
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    print(textwrap.fill(text, width, initial_indent=indent, subsequent_indent=" " * len(indent), break_on_hyphens=False))


def show_question(question):
    print()
    show(f"{question.number}. {question.text}")
    for letter, text in question.choices:
        show(text, f"   {letter}  ")


def show_answer(question):
    show(f"{question.right}. {question.answer}" if question.right else question.answer)
    show(question.sources)


def print_list(questions):
    subject = None
    for question in questions:
        if question.subject != subject:
            subject = question.subject
            print(f"\n{subject}" if question is not questions[0] else subject)
        show(question.text, f"{question.number:4}  ")


def print_all(questions):
    for question in questions:
        show_question(question)
        print()
        show_answer(question)


def ask(question):
    """Whether the choice was right; None for an open question. Throws EOFError when the quiz is to end."""
    show_question(question)
    letters = [letter for letter, _ in question.choices]
    prompt = f"{', '.join(letters)}, or q: " if letters else "think, then press the return key (q ends): "
    while True:
        reply = input(prompt).strip().upper()
        if reply == "Q":
            raise EOFError
        if not letters or reply in letters:
            break
    right = reply == question.right if letters else None
    if right is not None:
        print("Right." if right else f"No, it is {question.right}.")
    show_answer(question)
    return right


def ask_all(questions):
    asked, wrong = 0, []
    try:
        for question in questions:
            right = ask(question)
            asked += right is not None
            if right is False:
                wrong.append(question.number)
    except (EOFError, KeyboardInterrupt):
        print()
    if asked:
        print(f"\n{asked - len(wrong)} of {asked} right" + (f"; wrong: {', '.join(map(str, wrong))}" if wrong else ""))


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"rush: quiz: {message} (./rush help lists the commands)\n")


def chosen(questions, what, parser):
    if what is None:
        return questions
    if what.isdigit():
        found = [question for question in questions if question.number == int(what)]
        return found or parser.error(f"there are questions 1 to {len(questions)}, got {what}")
    subjects = dict.fromkeys(question.subject for question in questions)
    named = [subject for subject in subjects if re.search(rf"\b{re.escape(what)}", subject, re.IGNORECASE)]
    if len(named) != 1:
        parser.error(f"expected a number or one of the subjects {', '.join(subjects)}; got '{what}'")
    return [question for question in questions if question.subject == named[0]]


def main():
    parser = Parser(prog="./rush quiz", add_help=False, allow_abbrev=False)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("what", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--shuffle", action="store_true")
    arguments = parser.parse_args()
    questions = chosen(read_questions(arguments.root), " ".join(arguments.what) or None, parser)
    if arguments.list:
        return print_list(questions)
    if arguments.shuffle:
        questions = random.sample(questions, len(questions))
    if sys.stdin.isatty() and sys.stdout.isatty():
        ask_all(questions)
    else:
        print_all(questions)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    from run_command import run_main
    run_main("quiz", main)
