#!/usr/bin/env python3
"""PyTorch's side of the attention in benchmarks/cuda/kernels.cpp: causal, (16, 12, length, 64), each back end.

usage: attention_torch.py [LENGTH...]
"""
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

BATCH, HEADS, WIDTH, RUNS = 16, 12, 64, 20
BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def milliseconds(run):
    for _ in range(3):
        run()
    total = 0.0
    for _ in range(RUNS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        total += begin.elapsed_time(end)
    return total / RUNS


def measure(name, dtype, length, backward, dropout_p):
    packed = torch.randn(BATCH, length, 3, HEADS, WIDTH, dtype=dtype, device="cuda")
    q, k, v = (packed.select(2, i).transpose(1, 2).detach().requires_grad_(backward) for i in range(3))
    grad = torch.randn(BATCH, length, HEADS, WIDTH, dtype=dtype, device="cuda").transpose(1, 2)

    def run():
        out = scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, is_causal=True)
        if backward:
            torch.autograd.grad(out, (q, k, v), grad)

    label = f"attention{length}/{name}/{str(dtype)[6:]}{'/dropout' if dropout_p else ''}/{'both' if backward else 'forward'}"
    try:
        with sdpa_kernel(BACKENDS[name]):
            time = milliseconds(run)
    except RuntimeError as error:
        print(f"{label:50} refused: {str(error).splitlines()[0]}")
        return
    flops = 2.0 * BATCH * HEADS * length * length * WIDTH * (3.5 if backward else 1)
    print(f"{label:50} {time:8.3f} ms {flops / time * 1e-9:8.1f} TFLOP/s")


def main():
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, cuDNN {torch.backends.cudnn.version()}")
    for length in [int(a) for a in sys.argv[1:]] or [1024, 4096]:
        for backward in (False, True):
            for name in ("cudnn", "flash", "efficient", "math"):
                if name == "math" and length > 1024:
                    continue
                measure(name, torch.bfloat16, length, backward, 0.0)
                if name != "math":
                    measure(name, torch.bfloat16, length, backward, 0.1)
            for name in ("efficient", "math"):
                if name == "efficient" or length <= 1024:
                    measure(name, torch.float32, length, backward, 0.0)


main()
