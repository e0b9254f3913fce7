"""PyTorch's side of benchmarks/compile.cpp: what torch.compile makes of a chain of twenty element-wise operators, in the faster
of its modes. The GPT there is that of torch_training.py."""
import torch

from torch_modes import compile_modes, in_fastest_mode, set_fastest
from torch_timing import on_host, workload


def twenty(x):
    y = x
    for _ in range(5):
        y = (y * 1.1 + 0.3).mul(x).relu()
    return y


@workload(r"(cuda_|)compile/chain20")
def chain(cuda):
    set_fastest()
    device, calls = ("cuda", 50) if cuda else ("cpu", 1)
    x = torch.randn(16, 1024, 1024, device=device)

    def make(mode):
        run = mode.of(twenty)
        return mode.run(lambda: run(x))

    with torch.no_grad():
        measure = in_fastest_mode(make, compile_modes(), device, lambda step: on_host(step, device, calls, 2), calls)

    def without_gradients():
        with torch.no_grad():
            return measure()

    return without_gradients
