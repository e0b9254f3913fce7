#!/usr/bin/env python3
"""PyTorch's side of benchmarks/cuda/conv.cpp: times the convolutions that a run of it has timed, and prints both.

usage: ./rush bench cuda_conv --json ours.json && conv_torch.py ours.json
"""
import collections
import json
import math
import re
import sys

import torch

IMAGES, CALLS, ITERATIONS = 64, 10, 10
NAME = re.compile(r"cuda_conv/(\d+)x(\d+)_(\d+)_k(\d+)s(\d+)/(\w+)/(\w+)/(\w+)")
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "tf32": torch.float32}
FORMATS = {"nhwc": torch.channels_last, "nchw": torch.contiguous_format}
MASKS = {"input_gradient": [True, False, False], "weight_gradient": [False, True, False]}


def microseconds(run):
    for _ in range(3):
        run()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    total = 0.0
    for _ in range(ITERATIONS):
        begin.record()
        for _ in range(CALLS):
            run()
        end.record()
        end.synchronize()
        total += begin.elapsed_time(end)
    return total * 1e3 / (CALLS * ITERATIONS)


def measure(channels, size, outputs, kernel, stride, direction, dtype, layout):
    options = {"dtype": DTYPES[dtype], "device": "cuda"}
    x = torch.randn(IMAGES, channels, size, size, **options).contiguous(memory_format=FORMATS[layout])
    w = torch.randn(outputs, channels, kernel, kernel, **options).contiguous(memory_format=FORMATS[layout])
    geometry = ([stride] * 2, [kernel // 2] * 2, [1, 1], False, [0, 0], 1)
    if direction == "forward":
        return microseconds(lambda: torch.ops.aten.convolution(x, w, None, *geometry))
    y = torch.ops.aten.convolution(x, w, None, *geometry)
    backward = torch.ops.aten.convolution_backward
    return microseconds(lambda: backward(y, x, w, None, *geometry, MASKS[direction]))


def main(path):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = True
    logarithms = collections.defaultdict(list)
    print(f"{'convolution':<44} {'ours, us':>9} {'PyTorch':>9} {'ratio':>6}")
    with open(path) as file:
        rows = json.load(file)["benchmarks"]
    for row in rows:
        found = NAME.match(row["name"])
        if not found or row.get("error_occurred"):
            continue
        numbers, words = [int(text) for text in found.groups()[:5]], found.groups()[5:]
        with torch.no_grad():
            theirs = measure(*numbers, *words)
        ours = row["real_time"]
        logarithms[words].append((math.log(ours / theirs), ours, theirs))
        print(f"{found.group(0)[10:]:<44} {ours:9.1f} {theirs:9.1f} {ours / theirs:6.2f}", flush=True)
    print()
    for words, each in logarithms.items():
        mean = math.exp(sum(log for log, _, _ in each) / len(each))
        total = sum(ours for _, ours, _ in each) / sum(theirs for _, _, theirs in each)
        print(f"{'/'.join(words):<44} geometric mean {mean:.3f}, of all together {total:.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
