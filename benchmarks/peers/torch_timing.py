"""Times what PyTorch does as rush_bench times what Rushlight does: over repetitions, of a device that is waited for.

A workload is prepared by the function that was registered for its name, which is that of our benchmark, and returns a
function without arguments; each call of that measures once, and returns a dictionary with "seconds" for one unit of the
workload, the unit that our benchmark counts, and "peak_bytes" where the memory of a GPU is of interest.
"""
import re
import statistics
import time

import torch

WARM_UPS = 3
WORKLOADS = []  # (pattern of names, function that prepares)


def workload(pattern):
    """Registers a function for names that match; it gets the groups of the pattern."""

    def register(prepare):
        WORKLOADS.append((re.compile(pattern), prepare))
        return prepare

    return register


def prepare(name):
    for pattern, make in WORKLOADS:
        found = pattern.fullmatch(name)
        if found:
            return make(*found.groups())
    raise KeyError(f"PyTorch's side has no workload {name}")


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def on_host(run, device="cpu", calls=1, min_seconds=0.5):
    """Seconds of a call of run(): by the host's clock, `calls` at a time, which the device is then waited for."""
    for _ in range(max(1, WARM_UPS * calls // 3)):
        run()
    synchronize(device)
    rounds, start, seconds = 0, time.perf_counter(), 0.0
    while seconds < min_seconds:
        for _ in range(calls):
            run()
        synchronize(device)
        rounds += 1
        seconds = time.perf_counter() - start
    return {"seconds": seconds / (rounds * calls)}


def on_device(run, iterations, calls=1):
    """Seconds of a call of run(): between two events around `calls` calls, the median of `iterations`."""
    for _ in range(WARM_UPS):
        run()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    milliseconds = []
    for _ in range(iterations):
        begin.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        milliseconds.append(begin.elapsed_time(end))
    return {"seconds": statistics.median_high(milliseconds) * 1e-3 / calls}


def with_peak(measure):
    """measure(), and the most memory that PyTorch's tensors had on the GPU meanwhile."""
    torch.cuda.reset_peak_memory_stats()
    result = measure()
    result["peak_bytes"] = torch.cuda.max_memory_allocated()
    return result
