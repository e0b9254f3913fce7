#!/usr/bin/env python3
"""ray_trials.py RAY_TUNE LAUNCH PROGRAM: two trials of tools/ray_tune.py on two processes each come to the losses of runs that
are started by hand, and a run that fails is told; where the package `ray` is installed."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import ray.tune  # noqa: F401
except ImportError:
    print("skipped: no ray")
    sys.exit()


def check(condition, *what):
    if not condition:
        sys.exit("ray_trials: " + " ".join(map(str, what)))


tool, launch, program = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])
OPTIONS = ["--digits", "240", "--batch_size", "48", "--epochs", "1"]
PROCESSES = "2"


def loss_by_hand(folder, rate):
    call = [launch, "-n", PROCESSES, program, *OPTIONS, "--lr", rate, "--out_dir", folder / rate, "--json", folder / "run.json"]
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "run.json").read_text())["test_loss"]


def tune(folder, rates, *options):
    call = [sys.executable, tool, "--processes", PROCESSES, "--metric", "test_loss", "--out", folder / "ray",
            "--vary", "lr=" + ",".join(rates), "--", program, *OPTIONS, *options]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.run(call, capture_output=True, text=True, cwd=folder, env=environment)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    expected = {rate: loss_by_hand(folder, rate) for rate in ["1e-3", "1e-2"]}
    told = tune(folder, expected)
    check(told.returncode == 0, told.stdout, told.stderr)
    found = {rate: float(loss) for rate, loss in re.findall(r"^lr (\S+) test_loss (\S+) ", told.stdout, re.M)}
    check(found == expected, "losses", found, "by hand", expected)
    best = min(expected, key=expected.get)
    check(told.stdout.splitlines()[-1] == f"best: lr {best}", told.stdout)

    told = tune(folder, ["0.1"], "--no_such_option", "1")
    check(told.returncode == 1 and "1 of 1 runs have failed" in told.stderr, "a failed run", told.stdout, told.stderr)
    logs = [file.read_text() for file in (folder / "ray").rglob("log.txt")]
    check(sum("no_such_option" in log for log in logs) == 1, "the log of the run that failed", *logs)
print("two trials have the losses of runs by hand:", expected)
