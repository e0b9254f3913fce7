#!/usr/bin/env python3
"""PyTorch's side of `./rush bench operators`: reads a case on each line of its input and answers with a line of JSON,
as time_operators.cpp does, which has the same steps under the same names.

usage: torch_side.py [--device cpu|cuda] [--threads N] [--seconds S]
"""
import argparse
import json
import math
import os
import sys
import time
import warnings

import torch


def square_matrices(kind, shape, options):
    n = shape[-1]
    random, one = torch.randn(shape, **options), torch.eye(n, **options)
    if kind == "spd":
        return random @ random.transpose(-1, -2) / n + one
    if kind == "solvable":
        return random / math.sqrt(n) + one * 2
    return (random / n + one * 2).triu()  # triangular


def filled(shape, dtype, how, device):
    kind, *numbers = how.split(":")
    numbers = [float(each) for each in numbers]
    floats = {"device": device, "dtype": torch.float32}
    own = {"device": device, "dtype": dtype}
    if kind == "randn" and dtype.is_complex:
        return torch.complex(torch.randn(shape, **floats), torch.randn(shape, **floats)).to(dtype)
    if kind in ("spd", "solvable", "triangular"):
        return square_matrices(kind, shape, floats).to(dtype)
    make = {
        "randn": lambda: torch.randn(shape, **floats),
        "rand": lambda: torch.rand(shape, **floats) * (numbers[1] - numbers[0]) + numbers[0],
        "int": lambda: torch.randint(int(numbers[0]), int(numbers[1]), shape, device=device),
        "bool": lambda: torch.rand(shape, **floats) < (numbers[0] if numbers else 0.5),
        "zeros": lambda: torch.zeros(shape, **own),
        "ones": lambda: torch.ones(shape, **own),
        "full": lambda: torch.full(shape, numbers[0], **own),
        "sorted": lambda: torch.randn(shape, **floats).sort(-1)[0],
        "softmax": lambda: torch.randn(shape, **floats).softmax(-1),
        "log_softmax": lambda: torch.randn(shape, **floats).log_softmax(-1),
        "offsets": lambda: torch.arange(shape[0], device=device) * int(numbers[0]),
        "arange": lambda: torch.arange(math.prod(shape), device=device).reshape(shape),
    }
    if kind not in make:
        raise ValueError(f"there is no fill {how}")
    return make[kind]().to(dtype)


def laid_out(shape, dtype, how, layout, device):
    def contiguous(sizes):
        return filled(sizes, dtype, how, device).contiguous()

    if not layout:
        return contiguous(shape)
    if layout == "t":
        return contiguous([*shape[:-2], shape[-1], shape[-2]]).transpose(-1, -2)
    if layout == "r":
        return contiguous(shape[::-1]).permute(list(range(len(shape)))[::-1])
    if layout == "s":
        return contiguous([*shape[:-1], 2 * shape[-1]])[..., ::2]
    if layout == "b":
        return contiguous([1, *shape[1:]]).expand(shape)
    if layout == "bl":
        return contiguous([*shape[:-1], 1]).expand(shape)
    if layout == "cl":
        memory_format = torch.channels_last_3d if len(shape) == 5 else torch.channels_last
        return filled(shape, dtype, how, device).contiguous(memory_format=memory_format)
    raise ValueError(f"there is no layout {layout}")


class Reader:
    """Reads values; collects the tensors that gradients are taken of, if with_grad."""

    def __init__(self, with_grad, device):
        self.with_grad, self.device = with_grad, device
        self.leaves = []

    def read(self, value):
        if isinstance(value, list):
            return [self.read(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "shape" in value:
            return self.tensor(value)
        if "device" in value:
            return self.device
        return getattr(torch, value.get("dtype") or value["memory_format"])

    def tensor(self, spec):
        dtype = getattr(torch, spec["dtype"])
        made = laid_out(spec["shape"], dtype, spec["fill"], spec.get("layout"), self.device).detach()
        if self.with_grad and (dtype.is_floating_point or dtype.is_complex) and spec.get("grad", True):
            self.leaves.append(made.requires_grad_())
        return made


def call_of(case, device):
    """The function that makes a case's call."""
    name, _, overload = case["op"].removeprefix("aten::").partition(".")
    op = getattr(getattr(torch.ops.aten, name), overload or "default")
    reader = Reader(case.get("grad", False), device)
    arguments = reader.read(case["args"])
    named = {key: reader.read(value) for key, value in case["kwargs"].items()}

    def call():
        outputs = op(*arguments, **named)
        if not reader.leaves:
            return
        loss = None
        for each in outputs if isinstance(outputs, (tuple, list)) else [outputs]:
            if isinstance(each, torch.Tensor) and each.requires_grad:
                total = (torch.view_as_real(each) if each.is_complex() else each).sum()
                loss = total if loss is None else loss + total
        torch.autograd.grad([loss], reader.leaves, allow_unused=True)

    return call


class Timer:
    def __init__(self, arguments):
        self.on_gpu, self.seconds = arguments.device != "cpu", arguments.seconds
        of_thread = not self.on_gpu and arguments.threads == 1
        self.now = time.thread_time if of_thread else time.perf_counter

    def wait_for_device(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def device_works(self):
        try:
            self.wait_for_device()
            return True
        except RuntimeError:
            return False

    def round(self, call, calls):
        self.wait_for_device()
        start = self.now()
        for _ in range(calls):
            call()
        self.wait_for_device()
        return (self.now() - start) / calls

    def seconds_of(self, call):
        """Seconds of a call, the least of rounds of some calls each."""
        once = self.round(call, 1)
        for _ in range(2):
            if once < 2:
                once = min(once, self.round(call, 1))
        calls = 16 if self.on_gpu else int(min(max(self.seconds / 12 / max(once, 1e-7), 1), 4096))
        best, spent, rounds = once, 0, 0
        while rounds < 15 and (rounds < 2 or spent < self.seconds) and spent + calls * best <= 2 * self.seconds:
            seconds = self.round(call, calls)
            best = seconds if rounds == 0 and calls > 1 else min(best, seconds)
            spent, rounds = spent + seconds * calls, rounds + 1
        return best

    def answer(self, case, device):
        try:
            torch.manual_seed(1)
            return {"seconds": self.seconds_of(call_of(case, device))}
        except Exception as error:  # a case that throws must not end the others
            return {"error": (str(error).splitlines() or [type(error).__name__])[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.05)
    arguments = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print goes to stderr
    warnings.simplefilter("ignore")
    torch.set_num_threads(arguments.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    timer, device = Timer(arguments), torch.device(arguments.device)
    torch.zeros(1, device=device)  # throws where there is no such device
    name = torch.cuda.get_device_name() if timer.on_gpu else "cpu"
    print(json.dumps({"torch": torch.__version__, "device": name}), file=answers)
    for line in sys.stdin:
        answer = timer.answer(json.loads(line), device)
        if not timer.device_works():  # where a kernel has failed, no other one runs in this process
            answer["ends"] = True
        print(json.dumps(answer), file=answers)
        if "ends" in answer:
            sys.exit(1)  # compare.py starts the next one


if __name__ == "__main__":
    main()
