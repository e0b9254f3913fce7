"""Runs files of cases with rush_conformance. A case that ends the runner is found, and the others still run."""
import collections
import json
import os
import pathlib
import signal
import subprocess
import tempfile


class Results:
    """What became of cases: counts by operator family, and the reason of each case that differs, by its id."""

    def __init__(self):
        self.passed, self.missing = collections.Counter(), collections.Counter()
        self.differing = {}

    def add(self, other):
        self.passed += other.passed
        self.missing += other.missing
        self.differing.update(other.differing)


def run_file(path, command, seconds=600):
    """The results of a file of cases; `command` is the runner and its options."""
    lines = path.read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        return run_lines(lines, path.with_suffix(".safetensors"), command, pathlib.Path(folder), seconds)


def run_lines(lines, tensors, command, folder, seconds):
    cases, link, report = folder / "cases.jsonl", folder / "cases.safetensors", folder / "report.json"
    cases.write_text("\n".join(lines) + "\n")
    if not link.is_symlink():
        link.symlink_to(tensors.resolve())
    report.unlink(missing_ok=True)
    end = how_it_ended([*command, cases, "--json", report], seconds)
    if report.exists():
        return read(json.loads(report.read_text()))
    results = Results()
    if len(lines) == 1:
        results.differing[json.loads(lines[0])["id"]] = end
        return results
    for half in (lines[: len(lines) // 2], lines[len(lines) // 2 :]):
        results.add(run_lines(half, tensors, command, folder, seconds))
    return results


def how_it_ended(command, seconds):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                              timeout=seconds, env={**os.environ, "OMP_NUM_THREADS": "1"})
    except subprocess.TimeoutExpired:
        return f"the runner had not ended after {seconds} s"
    if done.returncode < 0:
        return f"the runner ended by {signal.Signals(-done.returncode).name}"
    return f"the runner ended with {done.returncode}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"


def read(report):
    results = Results()
    for device in report["devices"].values():
        for family, tally in device["families"].items():
            results.passed[family] += tally["passed"]
            results.missing[family] += tally["missing"]
            results.differing.update(tally.get("failures", {}))
    return results
