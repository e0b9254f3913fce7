"""How a PyTorch expert would run a step of training: in the fastest of torch.compile's modes and of CUDA graphs captured by hand.

Which of them is fastest depends on the net, so all are tried, and the peer of our row is the best.
"""
import dataclasses
import gc
import sys
import time

import torch

from torch_timing import synchronize

max_autotune = False  # try its modes too, which compile for minutes


@dataclasses.dataclass(frozen=True)
class Mode:
    """A way to run a step."""

    compiled: str = ""  # a mode of torch.compile; "": eager
    captured: bool = False  # the whole step, the optimiser's part too, as a CUDA graph

    def __str__(self):
        return (self.compiled or "eager") + (", CUDA graph by hand" if self.captured else "")

    def of(self, model):
        """The model as the mode calls it."""
        return torch.compile(model, mode=self.compiled) if self.compiled else model

    def run(self, step):
        """A step as the mode takes it."""
        if self.captured:
            return as_cuda_graph(step)

        def marked():
            torch.compiler.cudagraph_mark_step_begin()
            return step()

        return marked if self.compiled else step


EAGER = Mode()


def compile_modes():
    """Those of torch.compile."""
    names = ["default", "reduce-overhead"]
    if max_autotune:
        names += ["max-autotune", "max-autotune-no-cudagraphs"]
    return [Mode(name) for name in names]


def all_modes():
    """Beside them the graphs by hand, for what Rushlight captures too."""
    return [*compile_modes(), Mode("", captured=True), Mode("default", captured=True)]


def set_fastest():
    """The settings by which an expert trades the last bits of float32 for speed."""
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True


def as_cuda_graph(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def free_memory():
    """What a mode compiled and captured, once nothing refers to it."""
    torch.compiler.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def trial(step, device, calls=10, rounds=3):
    """Seconds of a step: the least mean of `calls` in a row."""

    def seconds():
        start = time.perf_counter()
        for _ in range(calls):
            step()
        synchronize(device)
        return (time.perf_counter() - start) / calls

    seconds()
    return min(seconds() for _ in range(rounds))


def try_modes(make, modes, device, calls):
    """Seconds of make(mode)() by mode. What fails is left out, and named on stderr."""
    seconds = {}
    for mode in modes:
        try:
            free_memory()
            seconds[mode] = trial(make(mode), device, calls)
        except Exception as error:  # noqa: BLE001, a mode that a net does not have must not end the others
            lines = str(error).splitlines() or [""]
            print(f"PyTorch cannot run this in the mode '{mode}': {type(error).__name__}: {lines[0]}", file=sys.stderr)
    if not seconds:
        raise RuntimeError(f"none of the modes works: {', '.join(map(str, modes))}")
    return seconds


def made_counting_memory(make, mode, device):
    """make(mode), and its first calls. PyTorch counts the most memory that its tensors have from when it records the step: what
    is recorded stays where it is, and its replays ask for none. What it takes to compile does not count."""
    if device != "cuda":
        return make(mode)
    if mode.captured:
        torch.cuda.reset_peak_memory_stats()
        return make(mode)
    step = make(mode)
    step()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        step()
    return step


def in_fastest_mode(make, modes, device, measure, calls=10):
    """Tries the modes by make(mode), a function that takes a step. Returns a function that has measure(step) measure the
    fastest, and adds to its result which one that is, what each took, and the most memory that it had on a GPU."""
    seconds = try_modes(make, modes, device, calls)
    best = min(seconds, key=seconds.get)
    free_memory()  # the memory that is measured is that of one
    step = made_counting_memory(make, best, device)
    about = {"mode": str(best), "modes": {str(mode): each for mode, each in seconds.items()}}

    def measured():
        result = {**measure(step), **about}
        if device == "cuda":
            result["peak_bytes"] = torch.cuda.max_memory_allocated()
        return result

    return measured
