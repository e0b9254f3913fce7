"""What a profile adds to a call in PyTorch: as benchmarks/profiler.cpp."""
import time

import torch

from torch_timing import workload

CALLS, REPETITIONS = 10000, 5


def seconds(a, b):
    least = 1.0
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        for _ in range(CALLS):
            a + b
        least = min(least, time.perf_counter() - start)
    return least / CALLS


@workload(r"profiler/add8_(nograd|grad)")
def added(kind):
    def measure():
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        a, b = torch.ones(8, requires_grad=kind == "grad"), torch.ones(8)
        without = seconds(a, b)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            profiled = seconds(a, b)
        torch.set_num_threads(threads)
        return {"seconds": profiled - without}

    return measure
