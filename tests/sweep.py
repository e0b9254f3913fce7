#!/usr/bin/env python3
"""sweep.py ROOT BIN: what ./rush sweep makes of calls. The runner is a stand-in first. Where PyTorch is installed, for
this Python or that of RUSH_PEER_PYTHON, rush_conformance in BIN runs a small sweep, and must find an answer that was
spoiled."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT, BIN = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
PEER = os.environ.get("RUSH_PEER_PYTHON", sys.executable)
SWEEP = ROOT / "tools/sweep"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SWEEP))
from run_cases import run_file  # noqa: E402

# Its case "bad" fails, "deadly" ends the process.
STAND_IN = """#!/usr/bin/env python3
import json, os, signal, sys
ids = [json.loads(line)["id"] for line in open(sys.argv[1])]
if "deadly" in ids:
    os.kill(os.getpid(), signal.SIGSEGV)
failures = {id: "differs" for id in ids if id == "bad"}
family = {"passed": len(ids) - len(failures), "failed": len(failures), "missing": 0, "failures": failures}
json.dump({"devices": {"cpu": {"families": {"add": family}}}}, open(sys.argv[3], "w"))
"""

# What the recorder takes, leaves out, and must not be confused by.
PROGRAM = """
import torch
class Own(torch.Tensor):
    pass
x = torch.arange(6, dtype=torch.float64).reshape(2, 3)
torch.add(x.t(), x.t())                      # strided
torch.add(x.t(), x.t())                      # a repetition
torch.addmm(torch.ones(3), torch.ones(3, 2), torch.ones(2, 3)[:, :1].expand(2, 3))
torch.nn.functional.conv1d(torch.ones(1, 2, 5), torch.ones(3, 2, 2))
torch.einsum("ij,kj->ik", x, x)
y = x.clone().requires_grad_()
(y.sin() * y).sum().backward()
x.clone().add_(2)
torch.view_as_complex(x[:, :2].contiguous()).conj().sum()
torch.empty(4), torch.rand(4), torch.ones(3, device="meta").sin(), torch.eye(2).to_sparse().sum()
torch.ones(2).as_subclass(Own).cos()
torch.equal(x, x)
raise SystemExit(0)
"""


def check(condition, *what):
    if not condition:
        sys.exit("sweep: " + " ".join(map(str, what)))


def check_runner(folder):
    runner, cases = folder / "runner", folder / "cases.jsonl"
    runner.write_text(STAND_IN)
    runner.chmod(0o755)
    names = [f"good{i}" for i in range(20)]
    cases.write_text("".join(json.dumps({"id": id}) + "\n" for id in [*names[:7], "bad", *names[7:], "deadly"]))
    results = run_file(cases, [runner])
    check(results.passed["add"] == 20, "counts", results.passed)
    wanted = {"bad": "differs", "deadly": "the runner ended by SIGSEGV"}
    check(results.differing == wanted, "differing", results.differing)


def sweep(*arguments, status):
    """What it prints."""
    command = [sys.executable, SWEEP, "--build", BIN.parent, "--jobs", "1", "--peer-python", PEER, *arguments]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    check(done.returncode == status, f"{arguments} ends with {done.returncode}:", done.stdout, done.stderr)
    return done.stdout


def cases_in(folder):
    return [json.loads(line) for file in sorted(folder.rglob("*.jsonl")) for line in file.read_text().splitlines()]


def spoil(folder, case):
    """Changes the exponent of the first number of the case's output, of float64."""
    for path in folder.rglob("*.safetensors"):
        data = bytearray(path.read_bytes())
        (length,) = struct.unpack_from("<Q", data)
        entry = json.loads(data[8 : 8 + length]).get(case["outputs"][0]["tensor"])
        if entry:
            data[8 + length + entry["data_offsets"][0] + 7] ^= 0x40
            path.write_bytes(data)


def check_samples(folder):
    text = sweep("samples", "--ops", "^(sum|linalg.qr|nn.functional.pad)$", "--samples", 4, "--out", folder, status=0)
    passed = re.search(r"^passed (\d+), known \d+, differing 0$", text, re.M)
    check(passed and int(passed[1]) > 100, "samples", text)


def check_script(folder):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    text = sweep("script", program, "--out", folder / "cases", status=0)
    reasons = ("a repetition", "random numbers", "undefined results", "a subclass of Tensor",
               "a tensor that is not dense")
    for reason in reasons:
        check(reason in text, f"nothing was left out as '{reason}':", text)
    cases = cases_in(folder / "cases")
    found = {case["overload"].removeprefix("aten::") for case in cases}
    wanted = set("add.Tensor addmm conv1d convolution einsum bmm sin mul.Tensor add_.Tensor equal".split())
    check(wanted <= found, "not recorded:", *(wanted - found))
    strided = next(case for case in cases if case["overload"] == "aten::add.Tensor" and "strides" in case["args"][0])
    check(strided["args"][0]["strides"] == [1, 3] and len(strided["grads"]) == 2, "strides and gradients", strided)
    spoil(folder / "cases", strided)
    text = sweep("cases", folder / "cases", status=1)
    check(re.search(r"^add +\d+ +0 +1$", text, re.M), "a wrong answer passes:", text)
    words = (folder / "cases/differing.txt").read_text()
    call = "aten::add.Tensor(float64[3, 2] of strides [1, 3] [[0.0, 3.0]"
    check(words.startswith(call) and "output 0: 1 of 6 values differ" in words, words)


with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    check_runner(scratch)
    if subprocess.run([PEER, "-c", "import torch"], capture_output=True).returncode != 0:
        print("skipped: no PyTorch")
        sys.exit()
    samples = subprocess.run([PEER, "-c", "import torch.testing._internal.common_methods_invocations"], capture_output=True)
    if samples.returncode == 0:  # else a package is missing that PyTorch's tests want
        check_samples(scratch / "samples")
    check_script(scratch)
