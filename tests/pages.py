#!/usr/bin/env python3
"""Holds README.md, CONTRIBUTING.md, docs/ and .github/ to the tree: commands, options, paths, notes, links, and C++ that compiles.
usage: pages.py ROOT --extract FOLDER   writes the C++ of all pages to FOLDER: snippets.cpp, and each whole program
       pages.py ROOT --check BIN        checks the rest; BIN holds the programs, whose --help is asked for their options"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
         *(page for folder in ["docs", ".github"] for page in sorted((ROOT / folder).rglob("*.md")))]
# cmake blocks are tests/package, gdb blocks and what they print tests/debug.
LANGUAGES = {"cpp", "sh", "cmake", "gdb", "text", "console"}
QUOTING = {"add_an_operator.md"}  # its C++ is the tree's own, and is compiled there
EXAMPLE_OPERATOR = "special_xlog1py"
CODE = {".h", ".cpp", ".cu", ".inc", ".cuh"}
PROGRAMS = {"demo": "mnist", "conformance": "rush_conformance", "train-parity": "rush_train_parity"}
FOREIGN_OPTIONS = {"test", "bench", "fuzz"}  # those of CTest, Google Benchmark and libFuzzer
ELSEWHERE = ("aten/", "c10/", "torch/", "lab/")  # files of PyTorch, and of who does a lab
NOT_COMPILED = re.compile(r"<!-- not compiled: .+ -->\s*$")


def blocks(page):
    """(language, line of the first line, text, what stands before it) of each fenced block."""
    text = page.read_text()
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield found[1], text.count("\n", 0, found.start(2)) + 1, found[2], text[: found.start()]


def extract(folder):
    """A snippet becomes a function; `{ ... }` in it stands for code that is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    snippets, programs = ['#include "tests/pages/given.h"\n'], {}
    for page in PAGES:
        if page.name in QUOTING:
            continue
        for language, line, text, before in blocks(page):
            if language != "cpp" or NOT_COMPILED.search(before):
                continue
            place = f'#line {line} "{page}"\n'
            if "int main(" in text:
                programs[f"{page.stem}_{line}.cpp"] = place + text
            else:
                name = f"{page.stem}_{line}"
                snippets.append(f"void {name}();\nvoid {name}() {{\n{place}{text.replace('{ ... }', '{}')}}}\n")
    for name, text in {"snippets.cpp": "".join(snippets), **programs}.items():
        file = folder / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
    for old in folder.glob("*.cpp"):
        if old.name not in programs and old.name != "snippets.cpp":
            old.unlink()


def options_in(help_text):
    return set(re.findall(r"(?<![\w-])--[a-z][\w-]*", help_text))


class Checker:
    def __init__(self, bin_folder):
        self.bin = pathlib.Path(bin_folder)
        self.problems = []
        self.helps = {}
        self.rush = subprocess.run([ROOT / "rush", "help"], capture_output=True, text=True, check=True).stdout
        self.commands = set(re.findall(r"^  ([a-z][\w-]*) ", self.rush, re.M))
        self.titles = {}
        self.folders = {"/build/", "/data/", "/lab/", "/out/", "/include/", "/lib/"}  # made by builds and programs
        for room in ["core", "backends", "autograd", "nn", "optim", "compat", "examples", "tests", "benchmarks", "docs", "tools"]:
            self.folders.add(f"/{room}/")
            for file in (ROOT / room).rglob("*"):
                if file.is_dir():
                    self.folders.add(f"/{file.relative_to(ROOT)}/")
                elif file.suffix in CODE:
                    for title in re.findall(r"^\s*// Note \[([^\]]+)\]$", file.read_text(), re.M):
                        self.titles.setdefault(title, []).append(file.relative_to(ROOT))
        for title, files in self.titles.items():
            if len(files) > 1:
                self.problems.append(f"Note [{title}] is the title of several: {', '.join(map(str, files))}")

    def check(self, page):
        self.page = page.relative_to(ROOT)
        text = page.read_text()
        for language, line, block, _ in blocks(page):
            if language not in LANGUAGES:
                self.say(f"line {line}: a block opens with ```{language}, not one of {', '.join(sorted(LANGUAGES))}")
            if language == "sh":
                for command in block.replace("\\\n", " ").splitlines():
                    self.check_command(command.partition(" #")[0])
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
        for code in re.findall(r"`([^`]+)`", prose):
            code = re.sub(r"\s+", " ", code)
            self.check_command(code)
            is_file = re.fullmatch(r"[\w.-]+(/[\w.-]+)+\.(h|cpp|cu|inc|py|sh|md|cmake)", code)
            if is_file and not code.startswith(ELSEWHERE) and not (ROOT / code).is_file():
                self.say(f"there is no file {code}")
            if re.fullmatch(r"[\w.-]+(/[\w.-]+)*/", code) and not any(f.endswith("/" + code) for f in self.folders):
                self.say(f"there is no folder {code}")
        for notes in re.findall(r"\bNotes? ((?:\[[^\]]+\](?!\()(?:, | and )?)+)", re.sub(r"\s+", " ", prose)):
            for title in re.findall(r"\[([^\]]+)\]", notes):
                if title not in self.titles and title != "...":
                    self.say(f"there is no Note [{title}]")
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]+)?\)", prose):
            self.check_link(page, target, anchor)

    def check_quotations(self, page):
        """Each paragraph of C++ stands in a file that the page names above it, and the example's operator in no other."""
        self.page = page.relative_to(ROOT)
        quoted = set()
        for language, line, block, before in blocks(page):
            if language != "cpp":
                continue
            files = dict.fromkeys(re.findall(r"`([\w/]+\.(?:h|cpp))`", before))
            sources = {file: " ".join((ROOT / file).read_text().split()) for file in files}
            for paragraph in block.split("\n\n"):
                found = [file for file in files if " ".join(paragraph.split()) in sources[file]]
                if not found:
                    self.say(f"line {line}: none of {', '.join(files)} has these lines:\n{paragraph}")
                quoted.update(file for file in found if EXAMPLE_OPERATOR in paragraph)
        rooms = ["core", "backends", "autograd", "nn", "optim", "tests"]
        files = [f for room in rooms for f in (ROOT / room).rglob("*") if f.suffix in CODE]
        touched = sorted(str(f.relative_to(ROOT)) for f in files if re.search(rf"\b{EXAMPLE_OPERATOR}\b", f.read_text()))
        if touched != sorted(quoted) or len(touched) != 4:
            self.say(f"{EXAMPLE_OPERATOR} is in {', '.join(touched)}; the page quotes {', '.join(sorted(quoted))}")

    def check_link(self, page, target, anchor):
        if target.startswith("http"):
            return
        file = page.parent / target if target else page
        if not file.exists():
            return self.say(f"links to {target}, which is not there")
        if anchor:
            heads = re.findall(r"^#+ (.+)$", file.read_text(), re.M)
            anchors = {"#" + re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
            if anchor not in anchors:
                self.say(f"links to {target}{anchor}: {file.name} has no such heading")

    def check_command(self, text):
        """`./rush [OPTIONS] COMMAND [OPTIONS]`, or a program that was built."""
        for program in re.findall(r"build/release/bin/(\w+)", text):
            self.help_of(program)
        for call in re.findall(r"\./rush((?: [^\s|;&`]+)*)", text):
            words = call.split()
            while words and words[0].startswith("-"):
                self.check_option("./rush", words.pop(0), self.rush)
            if not words:
                continue
            command = words.pop(0)
            if command == "profile" and words:  # what follows is another command, or somebody's program
                while words[0].startswith("--"):
                    self.check_option("./rush profile", words[0], self.rush)
                    del words[:2]  # its value, too
                command = words.pop(0)
                if "/" in command:
                    continue
            if command == "launch":  # its own options come first, and then a program's
                continue
            if command == "memory" and words:  # one of the programs, with its options
                command = words.pop(0)
            if command not in self.commands:
                self.say(f"./rush has no command {command}")
                continue
            program = PROGRAMS.get(command, command)
            known = self.rush if command in {"compute-sanitizer", "portability", "fetch", "build", "lab", "docs", "quiz", "sweep"} else None
            for word in words:
                if word.startswith("--") and command not in FOREIGN_OPTIONS:
                    self.check_option(f"./rush {command}", word, known or self.help_of(program))

    def help_of(self, program):
        if program not in self.helps:
            file = self.bin / program
            if os.access(file, os.X_OK):
                self.helps[program] = subprocess.run([file, "--help"], capture_output=True, text=True).stdout
            else:
                sources = ["examples/{}/main.cpp", "tests/conformance/{}.cpp", "tests/debug/{}.cpp"]
                name = program.removeprefix("rush_")
                there = any((ROOT / s.format(name)).is_file() for s in sources) or name in {"bench", "tests"}
                self.helps[program] = None  # not built here
                if not there:
                    self.say(f"there is no program {program}")
        return self.helps[program]

    def check_option(self, program, word, help_text):
        option = word.partition("=")[0]
        if help_text is not None and option.replace("-", "_") not in {o.replace("-", "_") for o in options_in(help_text)}:
            self.say(f"{program} has no option {option}")

    def say(self, problem):
        self.problems.append(f"{self.page}: {problem}")


if sys.argv[2] == "--extract":
    extract(pathlib.Path(sys.argv[3]))
else:
    checker = Checker(sys.argv[3])
    for page in PAGES:
        checker.check(page)
        if page.name in QUOTING:
            checker.check_quotations(page)
    print("\n".join(checker.problems) or f"{len(PAGES)} pages, {len(checker.titles)} notes")
    sys.exit(bool(checker.problems))
