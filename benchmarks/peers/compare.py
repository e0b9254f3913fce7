#!/usr/bin/env python3
"""Prints what rush_bench measures beside what PyTorch takes for the same, as ratios of one run on one machine.

usage: ./rush bench peers [FILTER] [--rounds N] [--json FILE] [--peer-python PYTHON] [--max-autotune] [--list]

Ours and PyTorch's are measured in turn, round after round, and the medians compared. A ratio is our time, or memory, over
PyTorch's; the bar is what we mean it to be at most. FILTER is a regular expression of names of workloads. PyTorch is that
of --peer-python, of the variable RUSH_PEER_PYTHON, or of python3. Where PyTorch has several ways to run a training step, it
takes the fastest (torch_modes.py), which the row names; --max-autotune tries these modes too, which compile for minutes.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from beside_torch import Failure, as_time, require_torch

HERE = pathlib.Path(__file__).resolve().parent


class Rule:
    """How benchmarks of some names are compared."""

    def __init__(self, pattern, peer="torch", bar=1.0, rate=None, alone=False):
        self.pattern = re.compile(pattern)
        self.peer = peer  # which program measures PyTorch: see PEERS
        self.bar = bar
        self.rate = rate  # (what is counted, a function from the match to how many of it a unit of the workload has)
        self.alone = alone  # long ones are measured by themselves; others all together, and then PyTorch's


def per_batch(unit, each=1):
    return unit, lambda match: int(match.group(1)) * each


RULES = [
    Rule(r"dispatch/(?:add8_nograd|add8_grad|chain100)", peer="libtorch", bar=0.25),
    Rule(r"dispatch/\w+", peer="libtorch"),
    Rule(r"kernels/matmul/(\d+)", bar=1.11),
    Rule(r"kernels/\w+"),
    Rule(r"(?:cuda_)?compile/chain20", alone=True),
    Rule(r"cuda_compile/gpt_shakespeare", alone=True, bar=0.77),
    Rule(r"cuda_nets/\w+/(?:train|infer)/compiled(?:_graph)?", alone=True, bar=1.05),
    Rule(r"nets/\w+/(?:train|infer)/eager", alone=True),
    Rule(r"profiler/\w+"),
    Rule(r"fft/cpu/.+"),
    Rule(r"sparse/cpu/.+"),
    Rule(r"training/mnist/(\d+)", alone=True),
    Rule(r"training/gpt", alone=True),
    Rule(r"data_loader/.+", rate=("examples/s", lambda match: 1)),
    Rule(r"cuda_training/mnist/64", alone=True, bar=0.4),
    Rule(r"cuda_training/mnist_compiled/64", alone=True, bar=0.83),
    Rule(r"cuda_training/mnist(?:_compiled)?/(\d+)", alone=True),
    Rule(r"cuda_training/gpt_shakespeare", alone=True),
    Rule(r"cuda_training/gpt_shakespeare_graph", alone=True, bar=0.77),
    Rule(r"cuda_training/gpt2(?:_graph)?/(\d+)", alone=True, rate=per_batch("tokens/s", 1024)),
    Rule(r"cuda_training/resnet(?:18|50)/(\d+)", alone=True, rate=per_batch("images/s")),
    Rule(r"cuda/(?!matmul|attention)\w+/\w+"),
    Rule(r"cuda/matmul\d+/\w+", bar=1.03),
    Rule(r"cuda/attention.+"),
    Rule(r"cuda_semi_structured/\w+/\w+", bar=1.03),
    Rule(r"cuda_conv/.+", bar=1.03),
    Rule(r"cuda_profiler/.+", bar=1.02),
    Rule(r"cuda_dispatch/chain100", peer="libtorch", bar=0.5),
    Rule(r"cuda_dispatch/allocate_free", peer="libtorch", bar=0.4),
    Rule(r"cuda_dispatch/(?!bare_launch|add1_over_launch)\w+", peer="libtorch"),
    Rule(r"fft/cuda/.+"),
    Rule(r"sparse/cuda/.+", alone=True),
]
FIRST_STEP = Rule(r"first_step/gpt2", peer="first_step", alone=True)
FIRST_STEP_ON_A_GPU = Rule(FIRST_STEP.pattern, peer="first_step", bar=0.2, alone=True)  # else it is mostly the step itself


def rule_of(name):
    return next((rule for rule in RULES if rule.pattern.fullmatch(name)), None)


# ---- ours


class RushBench:
    """rush_bench. Its names end with how they are measured, which is no part of a workload's name."""

    ENDINGS = re.compile(r"(/(min_time:[\d.]+|iterations:\d+|real_time|manual_time))+$")
    # Counters that are seconds of the unit which PyTorch's side counts, too.
    UNITS = ("per_step", "per_call", "per_op", "per_transform")
    SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}

    def __init__(self, program, environment):
        self.program, self.environment = program, environment
        listed = self.run("--benchmark_list_tests")
        self.full_names = {self.ENDINGS.sub("", line): line for line in listed.splitlines() if "/" in line}

    def run(self, *arguments):
        done = subprocess.run([self.program, *arguments], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"rush_bench {' '.join(arguments)}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return done.stdout

    def measure(self, names):
        """A measurement for each name: as PyTorch's side answers."""
        wanted = "|".join(re.sub(r"([.^$*+?(){}|\[\]\\])", r"\\\1", self.full_names[name]) for name in names)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ours.json")
            self.run(f"--benchmark_filter=^({wanted})$", f"--benchmark_out={path}", "--benchmark_out_format=json")
            rows = json.loads(pathlib.Path(path).read_text())["benchmarks"]
        results = {self.ENDINGS.sub("", row["name"]): self.result_of(row) for row in rows}
        return [results.get(name, {"error": "not measured"}) for name in names]

    def result_of(self, row):
        if row.get("error_occurred"):
            return {"error": row["error_message"]}
        unit = next((row[each] for each in self.UNITS if each in row), None)
        if unit is None and "items_per_second" in row and row["name"].startswith("data_loader"):
            unit = 1 / row["items_per_second"]
        result = {"seconds": unit or row["real_time"] * self.SECONDS[row["time_unit"]]}
        if "peak_bytes" in row:
            result["peak_bytes"] = row["peak_bytes"]
        return result


class FirstStep:
    """Programs that say "step 1" when they have done it: the time that passes until then from their start."""

    def __init__(self, command, environment):
        self.command, self.environment = command, environment

    def measure(self, _):
        start = time.perf_counter()
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                self.command, env=self.environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            seconds = None
            for line in process.stdout:
                if seconds is None and line.startswith("step 1:"):
                    seconds = time.perf_counter() - start
            if process.wait() == 0 and seconds is not None:
                return [{"seconds": seconds}]
            errors.seek(0)
            return [{"error": (errors.read().strip().splitlines() or ["it did not finish a step"])[-1]}]


# ---- PyTorch's


class TorchSide:
    """torch_side.py, which stays: what it compiles serves all rounds."""

    def __init__(self, python, threads, max_autotune, environment):
        self.process = subprocess.Popen(
            [python, str(HERE / "torch_side.py"), str(threads), *(["--max-autotune"] if max_autotune else [])],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.about = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"PyTorch's side ended: {(self.process.stderr.read().strip().splitlines() or [''])[-1]}")
        return json.loads(line)

    def measure(self, names):
        results = []
        for name in names:
            print(name, file=self.process.stdin, flush=True)
            results.append(self.answer())
        return results

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Libtorch:
    """dispatch_libtorch.cpp, compiled against the libtorch of the peer's PyTorch when it is first wanted."""

    def __init__(self, python, version, folder, environment):
        self.environment = environment
        self.program = folder / f"dispatch_libtorch-{version}"
        source = HERE / "dispatch_libtorch.cpp"
        if self.program.exists() and self.program.stat().st_mtime > source.stat().st_mtime:
            return
        print("compiling dispatch_libtorch.cpp, which takes a minute", file=sys.stderr)
        asked = subprocess.check_output([python, "-c", "import torch; print(torch.__path__[0])"], text=True)
        torch = pathlib.Path(asked.strip())
        libraries = [name for name in ("torch", "torch_cpu", "c10", "torch_cuda") if (torch / f"lib/lib{name}.so").exists()]
        folder.mkdir(parents=True, exist_ok=True)
        command = [os.environ.get("CXX", "c++"), "-O2", "-std=c++17", "-w", source, "-o", self.program]
        command += [f"-I{torch}/include", f"-I{torch}/include/torch/csrc/api/include", f"-L{torch}/lib"]
        command += [f"-Wl,-rpath,{torch}/lib", "-Wl,--no-as-needed", *(f"-l{name}" for name in libraries)]
        done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise Failure(f"dispatch_libtorch.cpp does not compile: {(errors or ['?'])[0]}")

    def measure(self, names):
        done = subprocess.run([self.program, *names], env=self.environment, capture_output=True, text=True)
        lines = done.stdout.splitlines()
        if len(lines) != len(names):
            return [{"error": (done.stderr.strip().splitlines() or ["failed"])[-1]}] * len(names)
        return [json.loads(line) for line in lines]


# ---- rounds, medians and the table


class Row:
    def __init__(self, name, rule):
        self.name, self.rule = name, rule
        self.ours, self.theirs = [], []

    def error(self):
        for side, results in (("ours", self.ours), ("PyTorch", self.theirs)):
            for result in results:
                if "error" in result:
                    return f"{side}: {result['error']}"
        return None

    def ratio(self):
        return self.median(self.ours, "seconds") / self.median(self.theirs, "seconds")

    def median(self, results, key):
        values = [result[key] for result in results if key in result]
        return statistics.median(values) if values and len(values) == len(results) else None

    def mode(self):
        """How PyTorch ran it, where it tried several ways."""
        return next((result["mode"] for result in self.theirs if "mode" in result), None)

    def lines(self):
        """(name, ours, theirs, formatted by, bar) of the time and of the memory, where it was measured."""
        quantity = None
        if self.rule.rate:
            unit, count = self.rule.rate
            amount = count(self.rule.pattern.fullmatch(self.name))
            quantity = lambda seconds: f"{amount / seconds:,.0f} {unit}"  # noqa: E731
        yield self.name, self.median(self.ours, "seconds"), self.median(self.theirs, "seconds"), quantity or as_time, self.rule.bar
        peaks = [self.median(results, "peak_bytes") for results in (self.ours, self.theirs)]
        if None not in peaks:
            yield self.name + ", memory", *peaks, lambda size: f"{size / 2**30:.2f} GiB", 1.0


def groups_of(rows):
    """Rows that are measured together: all of a rule, unless they are to be alone."""
    groups = {}
    for row in rows:
        groups.setdefault(row.name if row.rule.alone else row.rule, []).append(row)
    return list(groups.values())


def measure(rows, ours, peers, rounds):
    for group in groups_of(rows):
        names = [row.name for row in group]
        kind = group[0].rule.peer
        for i in range(rounds):
            print(f"round {i + 1} of {rounds}: {names[0]}{' and others' if len(names) > 1 else ''}", file=sys.stderr)
            for row, result in zip(group, ours[kind].measure(names)):
                row.ours.append(result)
            for row, result in zip(group, peers[kind].measure(names)):
                row.theirs.append(result)
        for row in group:
            print_row(row)


WIDTH = 46


def print_row(row):
    problem = row.error()
    if problem:
        print(f"{row.name:<{WIDTH}} {problem}", flush=True)
        return
    for name, ours, theirs, text, bar in row.lines():
        missed = "" if ours <= bar * theirs else "  missed"
        mode = f"  ({row.mode()})" if row.mode() else ""
        print(f"{name:<{WIDTH}} {text(ours):>20} {text(theirs):>20} {ours / theirs:>6.2f} {bar:>5.2f}{missed}{mode}", flush=True)


def print_mean(rows):
    ratios = [row.ratio() for row in rows if not row.error()]
    if len(ratios) > 1:
        print(f"{f'geometric mean of {len(ratios)} ratios':<{WIDTH + 42}} {statistics.geometric_mean(ratios):>6.2f}")


def results_of(rows, about, rounds):
    all_rows = []
    for row in rows:
        if row.error():
            all_rows.append({"workload": row.name, "error": row.error()})
            continue
        each = {"workload": row.name, "bar": row.rule.bar, "ours": row.ours, "peer": row.theirs}
        each["ratio"] = row.ratio()
        all_rows.append(each)
    return {**about, "rounds": rounds, "rows": all_rows}


def parse():
    parser = argparse.ArgumentParser(prog="./rush bench peers", usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--peer-python", default=os.environ.get("RUSH_PEER_PYTHON", "python3"))
    parser.add_argument("--max-autotune", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    return arguments


def first_step_commands(arguments, gpu):
    device, batch, length = ("cuda", 12, 1024) if gpu else ("cpu", 1, 64)
    ours = [arguments.build / "bin/gpt2", "--device", device, "--batch_size", batch, "--block_size", length]
    ours += ["--dtype", "bfloat16" if gpu else "float32", "--max_iters", 1, "--eval_iters", 0, "--max_new_tokens", 0]
    ours += ["--out_dir", ""]
    theirs = [arguments.peer_python, HERE / "first_step_torch.py", device, batch, length]
    return [[str(each) for each in command] for command in (ours, theirs)]


def run(arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
    bench = RushBench(str(arguments.build / "bin/rush_bench"), environment)
    names = [name for name in bench.full_names if rule_of(name)]
    rows = [Row(name, rule_of(name)) for name in names]
    if (arguments.build / "bin/gpt2").exists():
        rows.append(Row("first_step/gpt2", FIRST_STEP))
    rows = [row for row in rows if re.search(arguments.filter, row.name)]
    if not rows:
        raise Failure(f"no workload matches '{arguments.filter}' (--list shows them)")
    if arguments.list:
        print("\n".join(row.name for row in rows))
        return
    require_torch(arguments.peer_python)
    torch = TorchSide(arguments.peer_python, arguments.threads, arguments.max_autotune, environment)
    gpu = torch.about["gpu"]
    if gpu:
        rows = [Row(row.name, FIRST_STEP_ON_A_GPU if row.rule is FIRST_STEP else row.rule) for row in rows]
    else:
        rows = [row for row in rows if "cuda" not in row.name]
    ours_first, theirs_first = first_step_commands(arguments, gpu)
    kinds = {row.rule.peer for row in rows}
    ours = {"torch": bench, "libtorch": bench, "first_step": FirstStep(ours_first, environment)}
    peers = {"torch": torch, "first_step": FirstStep(theirs_first, environment)}
    if "libtorch" in kinds:
        peers["libtorch"] = Libtorch(
            arguments.peer_python, torch.about["torch"], arguments.build / "peers", environment
        )
    print(f"PyTorch {torch.about['torch']}, {gpu or 'no GPU'}, {arguments.threads} threads; medians of {arguments.rounds} rounds")
    print(f"{'workload':<{WIDTH}} {'ours':>20} {'PyTorch':>20} {'ratio':>6} {'bar':>5}", flush=True)
    measure(rows, ours, peers, arguments.rounds)
    print_mean(rows)
    torch.close()
    if arguments.json:
        arguments.json.write_text(json.dumps(results_of(rows, torch.about, arguments.rounds), indent=1) + "\n")


def main():
    try:
        run(parse())
    except Failure as failure:
        sys.exit(f"rush: bench peers: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
