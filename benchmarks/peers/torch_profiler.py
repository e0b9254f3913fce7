"""What a profile adds to a call in PyTorch, and what it tells: as benchmarks/profiler.cpp and cuda/profiled_times.cpp."""
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


def told(op, call):
    """Seconds of the device that torch.profiler tells of a call of `op`."""
    calls = 20

    def measure():
        with torch.no_grad():
            for _ in range(3):
                call()
            torch.cuda.synchronize()
            with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as profile:
                # Of the first kernel PyTorch 2.11 counts the time twice: its launch has "Activity Buffer Request" within.
                torch.zeros(1, device="cuda")
                for _ in range(calls):
                    call()
        total = next(event.device_time_total for event in profile.key_averages() if event.key == op)
        return {"seconds": total * 1e-6 / calls}

    return measure


@workload(r"cuda_profiler/mm(\d+)/(\w+)")
def product(n, dtype):
    a, b = (torch.randn(int(n), int(n), dtype=getattr(torch, dtype), device="cuda") for _ in range(2))
    return told("aten::mm", lambda: torch.mm(a, b))


@workload(r"cuda_profiler/conv(\d+)x(\d+)/(\w+)")
def convolution(channels, size, dtype):
    channels, size, options = int(channels), int(size), {"dtype": getattr(torch, dtype), "device": "cuda"}
    x = torch.randn(64, channels, size, size, **options).contiguous(memory_format=torch.channels_last)
    w = torch.randn(channels, channels, 3, 3, **options).contiguous(memory_format=torch.channels_last)
    return told("aten::convolution", lambda: torch.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1))
