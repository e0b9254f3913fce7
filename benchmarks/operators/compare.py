#!/usr/bin/env python3
"""Times single operators beside PyTorch's on the same inputs, and prints ratios of one run on one machine.

usage: ./rush bench operators [FILTER] [--device cpu|cuda] [--threads N] [--over RATIO] [--errors] [--seconds S]
                              [--json FILE] [--peer-python PYTHON] [--list]

table.py has the cases; FILTER is a regular expression of their names. A hundred are timed of ours, then the same of
PyTorch's, and so on. A ratio is our time over theirs. Times are the least of some rounds, for about S seconds a case
(default: 0.05). On the CPU they are CPU time of one thread; with more threads (--threads), wall time. On a GPU they are
wall time of 16 calls, which are then waited for, over 16. TF32 is off. PyTorch is called from Python, ours from C++:
of tiny tensors, that is most of the difference. Last come the cases with a ratio over RATIO (default: 1.3), worst
first, and with --errors those that one side, or both, cannot do. PyTorch is that of --peer-python, of the variable
RUSH_PEER_PYTHON, or of python3.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import table

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "peers"))
from beside_torch import Failure, as_time, require_torch  # noqa: E402

BLOCK = 100


class Side:
    """A process that times cases. If it ends, the case that it was at has failed, and the next case starts another."""

    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, [str(each) for each in command], environment
        self.process = None
        self.about = self.start()

    def start(self):
        self.errors = tempfile.TemporaryFile("w+")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        try:
            self.process = subprocess.Popen(self.command, env=self.environment, text=True, **pipes)
        except OSError as error:
            raise Failure(f"{self.name} does not start: {error}") from None
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"{self.name} does not start: {self.last_words()}")
        return json.loads(line)

    def last_words(self):
        """Why the process has ended."""
        code = self.process.wait()
        self.errors.seek(0)
        return (self.errors.read().strip().splitlines() or [f"it ended with {code}"])[-1]

    def time(self, case):
        if self.process.poll() is not None:
            self.start()
        try:
            print(json.dumps(case), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return {"error": self.last_words()}
        line = self.process.stdout.readline()
        if not line:
            return {"error": self.last_words()}
        answer = json.loads(line)
        if answer.pop("ends", False):  # a kernel has failed, after which none runs in its process
            self.process.wait()
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Row:
    def __init__(self, case):
        self.case, self.name = case, case["id"]
        self.ours = self.theirs = None

    def fails(self):
        return "error" in self.ours or "error" in self.theirs

    def ratio(self):
        return self.ours["seconds"] / self.theirs["seconds"]

    def line(self):
        ours, theirs = (as_time(side["seconds"]) for side in (self.ours, self.theirs))
        return f"{self.name:<{WIDTH}} {ours:>14} {theirs:>14} {self.ratio():>7.2f}"

    def errors(self):
        sides = (("ours", self.ours), ("PyTorch", self.theirs))
        return "; ".join(f"{name}: {side['error']}" for name, side in sides if "error" in side)

    def result(self):
        result = {"case": self.name, "ours": self.ours, "peer": self.theirs}
        return result if self.fails() else {**result, "ratio": self.ratio()}


WIDTH = 56


def measure(rows, ours, theirs):
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        print(f"cases {start + 1} to {start + len(block)} of {len(rows)}", file=sys.stderr)
        for row in block:
            row.ours = ours.time(row.case)
        for row in block:
            row.theirs = theirs.time(row.case)
        for row in block:
            if not row.fails():
                print(row.line())
        sys.stdout.flush()


def print_summary(rows, over, with_errors):
    timed = sorted((row for row in rows if not row.fails()), key=Row.ratio, reverse=True)
    failed = [row for row in rows if row.fails()]
    both = sum("error" in row.ours and "error" in row.theirs for row in failed)
    slow = [row for row in timed if row.ratio() > over]
    print()
    if timed:
        faster = sum(row.ratio() < 1 for row in timed)
        mean = statistics.geometric_mean(row.ratio() for row in timed)
        print(f"{len(timed)} cases, geometric mean {mean:.3f}, {faster} faster than PyTorch, {len(slow)} over {over:g}")
    if failed:
        hint = "" if with_errors else " (--errors lists them)"
        print(f"{len(failed) - both} cases fail on one side, {both} on both{hint}")
    for row in slow:
        print(row.line())
    for row in failed if with_errors else []:
        print(f"{row.name:<{WIDTH}} {row.errors()}")


def parse():
    usage, explained = __doc__.split("usage: ")[1].split("\n\n")
    parser = argparse.ArgumentParser(prog="./rush bench operators", usage=usage, description=explained)
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--over", type=float, default=1.3)
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--peer-python", default=os.environ.get("RUSH_PEER_PYTHON", "python3"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.threads < 1 or arguments.seconds <= 0:
        parser.error("--threads and --seconds must be positive")
    return arguments


def write(path, text):
    try:
        path.write_text(text)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from None


def run(arguments):
    try:
        rows = [Row(case) for case in table.cases() if re.search(arguments.filter, case["id"])]
    except re.error as error:
        raise Failure(f"'{arguments.filter}' is no regular expression: {error}") from None
    if not rows:
        raise Failure(f"no case matches '{arguments.filter}' (--list shows them)")
    if arguments.list:
        print("\n".join(row.name for row in rows))
        return
    require_torch(arguments.peer_python)
    if arguments.json:
        write(arguments.json, "")  # rather than find out at the end that it cannot be written
    options = ["--device", arguments.device, "--threads", arguments.threads, "--seconds", arguments.seconds]
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
    ours = Side("rush_time_operators", [arguments.build / "bin/rush_time_operators", *options], environment)
    theirs = Side("PyTorch's side", [arguments.peer_python, HERE / "torch_side.py", *options], environment)
    about = {"torch": theirs.about["torch"], "device": theirs.about["device"], "threads": arguments.threads}
    print(f"PyTorch {about['torch']}, {about['device']}, threads: {about['threads']}")
    print(f"{'case':<{WIDTH}} {'ours':>14} {'PyTorch':>14} {'ratio':>7}", flush=True)
    measure(rows, ours, theirs)
    print_summary(rows, arguments.over, arguments.errors)
    ours.close()
    theirs.close()
    if arguments.json:
        results = {**about, "seconds": arguments.seconds, "rows": [row.result() for row in rows]}
        write(arguments.json, json.dumps(results, indent=1) + "\n")


def main():
    try:
        run(parse())
        sys.stdout.flush()
    except Failure as failure:
        sys.exit(f"rush: bench operators: {failure}")
    except BrokenPipeError:  # the reader of a pipe wants no more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
