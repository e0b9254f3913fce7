#!/usr/bin/env python3
"""Holds single operators to PyTorch's answers, over calls that are made on the spot with the PyTorch that is installed.

usage: ./rush sweep samples [--ops REGEX] [--samples N] [OPTIONS...]
       ./rush sweep script FILE... [OPTIONS...]
       ./rush sweep cases FOLDER [OPTIONS...]
options: [--filter REGEX] [--dtypes NAME,...] [--device cpu|cuda] [--compiled] [--order ORDER] [--seed N]
         [--jobs N] [--seconds S] [--most N] [--alike N] [--out FOLDER] [--peer-python PYTHON]

`samples` calls PyTorch's operators (of them those whose names REGEX finds) on at most N samples that its own tests have
of each dtype. `script` runs Python programs, with arguments where FILE is quoted with them, and takes every call of an
operator that they make; the files of PyTorch's own tests are such programs. `cases` repeats those of an earlier sweep,
whose --out it was. Each call becomes a case of conformance, with gradients in float64 and complex128, and each once:
at most --most of an operator with the same dtypes, and --alike of those that differ only in values and sizes. Calls
whose results are random or undefined, of other tensors than dense ones on the CPU and of large ones are left out and
counted. A process that makes cases ends after S seconds. rush_conformance then runs them on --device, or --compiled, or
with arguments that lie in memory in another --order (reversed, spread).
The table has the operators that are not whole; FOLDER/differing.txt has each call that differs, in words.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "benchmarks/peers")]
from beside_torch import Failure, require_torch  # noqa: E402
from known import why_known  # noqa: E402
from run_cases import Results, run_file  # noqa: E402


def parse():
    usage, explained = __doc__.split("usage: ")[1].split("\n\n")
    parser = argparse.ArgumentParser(prog="./rush sweep", usage=usage, description=explained)
    parser.add_argument("source", choices=("samples", "script", "cases"))
    parser.add_argument("files", nargs="*")
    parser.add_argument("--ops", default="")
    parser.add_argument("--filter", default="")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--dtypes", default="")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--order", choices=("row_major", "reversed", "spread"), default="row_major")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--most", type=int, default=30)
    parser.add_argument("--alike", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--peer-python", default=os.environ.get("RUSH_PEER_PYTHON", "python3"))
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if (arguments.source == "samples") == bool(arguments.files):
        parser.error("samples takes no file; script and cases need one")
    if arguments.source == "cases" and len(arguments.files) > 1:
        parser.error("cases takes one folder")
    return arguments


def operators_of(build):
    """The names of the operators that the library has."""
    done = subprocess.run([build / "bin/rush_operators"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"rush_operators ended with {done.returncode}: {done.stderr.strip()}")
    return [line.partition("(")[0] for line in done.stdout.splitlines()]


def recordings(arguments):
    """The settings of each process that makes cases, apart from its folder."""
    if arguments.source == "samples":
        return [{"ops": arguments.ops, "samples": arguments.samples, "part": part, "parts": arguments.jobs}
                for part in range(arguments.jobs)]
    return [{"script": shlex.split(file)} for file in arguments.files]


def record(arguments, settings, folder):
    """Makes cases in `folder`; returns what record.py says of them."""
    path, log = folder / "settings.json", folder / "log"
    path.write_text(json.dumps({**settings, "folder": str(folder)}))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [arguments.peer_python, HERE / "record.py", path]
    with open(log, "w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        try:
            process.wait(timeout=arguments.seconds + 60)  # it ends by itself, unless a call takes long
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    summary = folder / "summary.json"
    if summary.exists():
        return json.loads(summary.read_text())
    last = log.read_text(errors="replace").strip().rpartition("\n")[2]
    print(f"rush: the process that makes cases ended with {process.returncode}: {last}; see {log}", file=sys.stderr)
    return {"calls": 0, "made": 0, "refusals": 0, "left_out": {}, "missing": {}}


def record_all(arguments, folder):
    shutil.rmtree(folder, ignore_errors=True)
    shared = {"source": arguments.source, "operators": operators_of(arguments.build), "filter": arguments.filter,
              "dtypes": arguments.dtypes.split(",") if arguments.dtypes else [], "seed": arguments.seed,
              "seconds": arguments.seconds, "most": arguments.most, "most_alike": arguments.alike}
    parts = [(folder / f"{i:03}", {**shared, **each}) for i, each in enumerate(recordings(arguments))]
    for part, _ in parts:
        part.mkdir(parents=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        summaries = list(pool.map(lambda part: record(arguments, part[1], part[0]), parts))
    if not any(summary["calls"] for summary in summaries):
        raise Failure("no call of an operator was seen")
    return summaries


def run_all(arguments, folder):
    command = [arguments.build / "bin/rush_conformance", "--device", arguments.device, "--order", arguments.order]
    if arguments.compiled:
        command.append("--compiled")
    results, files = Results(), sorted(folder.rglob("*.jsonl"))
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for done in pool.map(lambda file: run_file(file, command), files):
            results.add(done)
    return results, files


def differing_cases(files, results):
    """[(case, reason, why it is known or None)], by operator, and the names of the operators that were called."""
    found, called = [], set()
    for file in files:
        for line in file.read_text().splitlines():
            case = json.loads(line)
            called.add(case["overload"])
            if case["id"] in results.differing:
                reason = results.differing.pop(case["id"])  # a call that two programs make counts once
                found.append((case, reason, why_known(case, reason)))
    return sorted(found, key=lambda each: (each[0]["op"], each[0]["overload"])), called


def in_words(case, reason, why):
    return f"{case['words']}\n    {reason}\n" + (f"    known: {why}\n" if why else "")


def print_recording(summaries):
    left_out, missing = collections.Counter(), collections.Counter()
    for summary in summaries:
        left_out.update(summary["left_out"])
        missing.update(summary["missing"])
    total = {key: sum(summary[key] for summary in summaries) for key in ("calls", "made", "refusals")}
    print(f"{total['calls']} calls, {total['made']} cases, {total['refusals']} of them of what is to be refused")
    for reason, count in left_out.most_common():
        print(f"  left out: {count:>9}  {reason}")
    if missing:
        print(f"  {len(missing)} operators that we lack: " + " ".join(name for name, _ in missing.most_common()))


def print_results(results, differing):
    wrong = collections.Counter(case["op"] for case, _, why in differing if not why)
    known = collections.Counter(case["op"] for case, _, why in differing if why)
    print(f"{'operator':<40} {'passed':>8} {'known':>8} {'differing':>9}")
    for family in sorted(wrong.keys() | known.keys()):
        print(f"{family:<40} {results.passed[family]:>8} {known[family]:>8} {wrong[family]:>9}")
    print(f"passed {sum(results.passed.values())}, known {sum(known.values())}, differing {sum(wrong.values())}")


def run(arguments):
    folder = arguments.out or arguments.build / "sweep"
    if arguments.source == "cases":
        folder = pathlib.Path(arguments.files[0])
    else:
        require_torch(arguments.peer_python)
        print_recording(record_all(arguments, folder))
    results, files = run_all(arguments, folder)
    differing, called = differing_cases(files, results)
    print_results(results, differing)
    never = [name for name in operators_of(arguments.build) if name not in called]
    (folder / "never_called.txt").write_text("".join(f"{name}\n" for name in never))
    print(f"called {len(called)} operators by name; {folder / 'never_called.txt'} lists the {len(never)} others")
    report = folder / "differing.txt"
    report.write_text("".join(in_words(*each) for each in differing))
    if differing:
        print(f"each call that differs: {report}")
    return any(why is None for _, _, why in differing)


def main():
    try:
        status = run(parse())
        sys.stdout.flush()
    except Failure as failure:
        sys.exit(f"rush: sweep: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(status)


if __name__ == "__main__":
    main()
