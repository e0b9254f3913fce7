#!/usr/bin/env python3
"""PyTorch's side of the benchmarks, a process that compare.py asks: a name of a workload on each line of its input, a
measurement as a line of JSON on its output. The first line says what it runs on. What was prepared last is kept, so that
a net is compiled once for all rounds.

usage: torch_side.py [THREADS] [--max-autotune]    (the latter: see torch_modes.py)
"""
import json
import os
import sys

import torch

import torch_modes
import torch_compile  # noqa: F401, registers workloads
import torch_kernels  # noqa: F401
import torch_nets  # noqa: F401
import torch_profiler  # noqa: F401
import torch_sparse  # noqa: F401
import torch_training  # noqa: F401
from torch_timing import prepare


def start_afresh():
    """What workloads set, as it is at the start of a process."""
    torch.compiler.reset()
    torch.backends.cudnn.benchmark = False
    torch.set_float32_matmul_precision("highest")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    torch.manual_seed(0)


class Prepared:
    """The workload that was asked for last."""

    def __init__(self):
        self.name, self.measure = None, None

    def answer(self, name):
        try:
            if name != self.name:
                self.name, self.measure = None, None  # frees its memory first
                start_afresh()
                self.measure = prepare(name)
                self.name = name
            return self.measure()
        except Exception as error:  # a row that cannot be measured must not end the others
            lines = str(error).splitlines()
            return {"error": f"{type(error).__name__}: {lines[0] if lines else ''}"}


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print goes to stderr
    threads = [each for each in sys.argv[1:] if each != "--max-autotune"]
    torch_modes.max_autotune = len(threads) < len(sys.argv) - 1
    if threads:
        torch.set_num_threads(int(threads[0]))
    has_gpu = torch.cuda.is_available()
    hello = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name() if has_gpu else None}
    print(json.dumps(hello), file=answers)
    workloads = Prepared()
    for line in sys.stdin:
        print(json.dumps(workloads.answer(line.strip())), file=answers)


if __name__ == "__main__":
    main()
