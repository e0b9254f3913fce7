#!/usr/bin/env python3
"""PyTorch's side of benchmarks/nets: the same nets, sizes and steps, in modes of torch.compile.

usage: torch_nets.py [--nets A,B] [--steps train,infer] [--modes default,reduce-overhead] [--size gpu|cpu|small] [--json FILE]

Prints for each net and step what a call takes in each mode: the median of rounds, in milliseconds. The modes are eager and
those of torch.compile; max-autotune and max-autotune-no-cudagraphs compile for minutes. As a workload of compare.py the
fastest mode is the peer of ours on a GPU, and on a CPU eager that of eager.
"""
import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F

from torch_modes import EAGER, Mode, compile_modes, free_memory, in_fastest_mode, set_fastest
from torch_timing import on_host, synchronize, workload
from torch_training import Block, Gpt

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Bert(nn.Module):
    def __init__(self, vocabulary, length, layers, heads, width, dropout):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.segments, self.norm, self.drop = nn.Embedding(2, width), nn.LayerNorm(width), nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout, norm_first=False) for _ in range(layers)))
        self.transform, self.last_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, tokens):
        positions = self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        x = self.drop(self.norm(self.words(tokens) + positions + self.segments(torch.zeros_like(tokens))))
        x = self.last_norm(F.gelu(self.transform(self.blocks(x))))
        return F.linear(x, self.words.weight, self.bias)


class LlamaBlock(nn.Module):
    def __init__(self, heads, key_heads, width, hidden):
        super().__init__()
        self.head = width // heads
        self.norm_1, self.norm_2 = nn.RMSNorm(width), nn.RMSNorm(width)
        shapes = {"q": (width, width), "out": (width, width), "down": (hidden, width)}
        shapes |= {name: (width, key_heads * self.head) for name in "kv"} | {name: (width, hidden) for name in ("gate", "up")}
        for name, (inputs, outputs) in shapes.items():
            setattr(self, name, nn.Linear(inputs, outputs, bias=False))

    def attend(self, x, cosines, sines):
        q, k, v = (layer(x).view(*x.shape[:2], -1, self.head).transpose(1, 2) for layer in (self.q, self.k, self.v))

        def rotate(t):
            a, b = t.chunk(2, -1)
            return t * cosines.to(t.dtype) + torch.cat([-b, a], -1) * sines.to(t.dtype)

        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).reshape(x.shape))

    def forward(self, x, cosines, sines):
        x = x + self.attend(self.norm_1(x), cosines, sines)
        normed = self.norm_2(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    def __init__(self, vocabulary, length, layers, heads, key_heads, width, hidden):
        super().__init__()
        self.words, self.norm = nn.Embedding(vocabulary, width), nn.RMSNorm(width)
        self.blocks = nn.ModuleList(LlamaBlock(heads, key_heads, width, hidden) for _ in range(layers))
        head = width // heads
        angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, head, 2) / head)).repeat(1, 2)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x, self.cosines, self.sines)
        return F.linear(self.norm(x), self.words.weight)


class Lstm(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.words, self.last = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)

    def forward(self, tokens):
        return self.last(self.lstm(self.words(tokens))[0])


def convolution(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class ResidualBlock(nn.Module):
    def __init__(self, inputs, width, stride, is_bottleneck):
        super().__init__()
        outputs = 4 * width if is_bottleneck else width
        shapes = [(width, 1, 1), (width, 3, stride), (outputs, 1, 1)] if is_bottleneck else [(width, 3, stride), (outputs, 3, 1)]
        layers, channels = [], inputs
        for to, kernel, step in shapes:
            layers += [convolution(channels, to, kernel, step), nn.BatchNorm2d(to), nn.ReLU(inplace=True)]
            channels = to
        self.body, self.shortcut = nn.Sequential(*layers[:-1]), nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def resnet(depths, is_bottleneck):
    layers = [convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels, width = 64, 64
    for depth in depths:
        for i in range(depth):
            layers.append(ResidualBlock(channels, width, 2 if i == 0 and width > 64 else 1, is_bottleneck))
            channels = 4 * width if is_bottleneck else width
        width *= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


class Vit(nn.Module):
    def __init__(self, side, patch, layers, width, heads):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (side // patch) ** 2 + 1, width))

    def forward(self, x):
        words = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.to(words.dtype).expand(len(x), -1, -1), words], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(self.twice(a, b) for a, b in zip([3, *widths], widths))
        self.widen = nn.ModuleList(nn.ConvTranspose2d(2 * each, each, 2, 2) for each in widths[-2::-1])
        self.up = nn.ModuleList(self.twice(2 * each, each) for each in widths[-2::-1])
        self.head = nn.Conv2d(width, 2, 1)

    @staticmethod
    def twice(inputs, outputs):
        layers = []
        for channels in (inputs, outputs):
            layers += [convolution(channels, outputs, 3), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers)

    def forward(self, x):
        seen = []
        for i, layers in enumerate(self.down):
            x = layers(F.max_pool2d(x, 2) if i else x)
            seen.append(x)
        for widen, up, other in zip(self.widen, self.up, seen[-2::-1]):
            x = up(torch.cat([other, widen(x)], 1))
        return self.head(x)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.mean, self.log_variance = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
        self.decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784))

    def forward(self, x):
        return self.decoder(self.mean(F.relu(self.encoder(x)))).sigmoid()

    def loss(self, x, wanted):
        hidden = F.relu(self.encoder(x))
        mean, s = self.mean(hidden), self.log_variance(hidden)
        scores = self.decoder(mean + torch.randn_like(s) * torch.exp(0.5 * s))
        divergence = -0.5 * (1 + s - mean**2 - s.exp()).sum()
        return F.binary_cross_entropy_with_logits(scores, wanted, reduction="sum") + divergence


class Gcn(nn.Module):
    def __init__(self, nodes, edges, features, hidden, classes):
        super().__init__()
        self.first, self.second, self.drop = nn.Linear(features, hidden), nn.Linear(hidden, classes), nn.Dropout(0.5)
        sources, targets = (torch.cat([torch.randint(nodes, (edges,)), torch.arange(nodes)]) for _ in range(2))
        scale = torch.zeros(nodes).index_add(0, targets, torch.ones(len(targets))).rsqrt()
        self.register_buffer("sources", sources)
        self.register_buffer("targets", targets)
        self.register_buffer("weights", (scale[sources] * scale[targets])[:, None])

    def propagate(self, x):
        return torch.zeros_like(x).index_add(0, self.targets, x.index_select(0, self.sources) * self.weights)

    def forward(self, x):
        return self.propagate(self.second(self.drop(F.relu(self.propagate(self.first(self.drop(x)))))))


def physics_loss(field, points, medium):
    """By torch.func, since torch.compile does not trace autograd.grad of what requires no gradient yet."""

    def summed(points):
        u = field(points)
        return u.sum(), u

    first, directional, u = torch.func.vjp(torch.func.grad(summed, has_aux=True), points, has_aux=True)
    of_x, of_t = (directional(one.expand_as(first))[0] for one in torch.eye(2, device=points.device))
    loss = torch.zeros((), device=points.device)
    for derivative in (first[:, :1], first[:, 1:], of_x[:, :1], of_x[:, 1:], of_t[:, 1:]):
        for factor in (points[:, :1], points[:, 1:], medium, u, u * u, u.sin()):
            loss = loss + (derivative * factor).pow(2).mean()
    return loss


def perceptron(activation, widths):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])


def mnist_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10),
    )


# ---- nets with their batches


@dataclasses.dataclass
class Workload:
    """As benchmarks/nets/nets.h has it."""

    net: nn.Module
    x: torch.Tensor
    y: torch.Tensor
    loss: Callable | None = None  # of x and y; by default the error of the net's scores
    dtype: torch.dtype = torch.float32
    is_channels_last: bool = False
    is_by_sgd: bool = False
    rate_of_adam: float = 1e-3

    def __post_init__(self):
        self.net, self.x, self.y = self.net.to(DEVICE), self.x.to(DEVICE), self.y.to(DEVICE)
        if self.is_channels_last:
            self.net, self.x = (each.to(memory_format=torch.channels_last) for each in (self.net, self.x))

    def error(self, x, y):
        if self.loss:
            return self.loss(x, y)
        scores = self.net(x)
        return F.cross_entropy(scores.flatten(0, 1), y.flatten()) if scores.dim() == 3 else F.cross_entropy(scores, y)


def of_images(net, batch, side, classes=1000, **options):
    labels = (batch, side, side) if classes == 2 else (batch,)
    options = {"dtype": torch.bfloat16, "is_channels_last": True, **options}
    return Workload(net, torch.randn(batch, 3, side, side), torch.randint(classes, labels), **options)


def of_tokens(net, vocabulary, batch, length, **options):
    x, y = (torch.randint(vocabulary, (batch, length)) for _ in range(2))
    return Workload(net, x, y, **{"dtype": torch.bfloat16, **options})


def of_nodes(nodes, features, labels):
    net = Gcn(nodes, 4 * nodes, features, 16, 7)
    y = torch.randint(7, (labels,))
    return Workload(net, torch.randn(nodes, features), y, lambda x, y: F.cross_entropy(net(x)[: len(y)], y))


def of_autoencoder(batch):
    net, x = Vae(), torch.rand(batch, 784)
    return Workload(net, x, x, net.loss)


def of_field(width, points):
    net = perceptron(nn.Tanh, [2, width, width, width, width, 1])
    return Workload(net, torch.rand(points, 2), torch.rand(points, 1), lambda x, y: physics_loss(net, x, y))


def of_perceptron(width, batch):
    net = perceptron(nn.ReLU, [width, width, width, width, width, 10])
    return Workload(net, torch.randn(batch, width), torch.randint(10, (batch,)))


def of_digits(batch):
    return Workload(mnist_cnn(), torch.randn(batch, 1, 28, 28), torch.randint(10, (batch,)))


def of_residual(depths, is_bottleneck, *size):
    return of_images(resnet(depths, is_bottleneck), *size, is_by_sgd=True)


NETS = {  # name: the net at a GPU's size, at a CPU's, and at a small one
    "mnist": (lambda: of_digits(64), lambda: of_digits(64), lambda: of_digits(2)),
    "mlp": (lambda: of_perceptron(1024, 128), lambda: of_perceptron(512, 128), lambda: of_perceptron(16, 4)),
    "resnet18": (
        lambda: of_residual([2, 2, 2, 2], False, 64, 224),
        lambda: of_residual([2, 2, 2, 2], False, 8, 112),
        lambda: of_residual([1, 1], False, 2, 32),
    ),
    "resnet50": (
        lambda: of_residual([3, 4, 6, 3], True, 64, 224),
        lambda: of_residual([3, 4, 6, 3], True, 8, 96),
        lambda: of_residual([1, 1], True, 2, 32),
    ),
    "vit": (
        lambda: of_images(Vit(224, 16, 12, 384, 6), 64, 224, is_channels_last=False),
        lambda: of_images(Vit(64, 8, 4, 192, 6), 8, 64, is_channels_last=False),
        lambda: of_images(Vit(32, 16, 2, 32, 2), 2, 32, is_channels_last=False),
    ),
    "bert": (
        lambda: of_tokens(Bert(30522, 512, 12, 12, 768, 0.1), 30522, 32, 128),
        lambda: of_tokens(Bert(2000, 128, 4, 4, 256, 0.1), 2000, 8, 64),
        lambda: of_tokens(Bert(50, 16, 2, 2, 32, 0.1), 50, 2, 16),
    ),
    "gpt2": (
        lambda: of_tokens(Gpt(50304, 1024, 12, 12, 768), 50257, 16, 1024),
        lambda: of_tokens(Gpt(256, 64, 4, 4, 128), 256, 12, 64),
        lambda: of_tokens(Gpt(50, 16, 2, 2, 32), 50, 2, 16),
    ),
    "llama": (
        lambda: of_tokens(Llama(32000, 1024, 12, 16, 4, 1024, 2560), 32000, 16, 1024),
        lambda: of_tokens(Llama(2000, 128, 4, 8, 4, 256, 640), 2000, 4, 128),
        lambda: of_tokens(Llama(50, 16, 2, 4, 2, 32, 48), 50, 2, 16),
    ),
    "unet": (
        lambda: of_images(UNet(64, 4), 16, 256, 2),
        lambda: of_images(UNet(16, 3), 2, 64, 2),
        lambda: of_images(UNet(4, 2), 1, 16, 2),
    ),
    "lstm": (
        lambda: of_tokens(Lstm(10000, 512), 10000, 64, 128, dtype=torch.float32),
        lambda: of_tokens(Lstm(1000, 256), 1000, 16, 64, dtype=torch.float32),
        lambda: of_tokens(Lstm(50, 8), 50, 2, 6, dtype=torch.float32),
    ),
    "gcn": (lambda: of_nodes(2708, 1433, 140), lambda: of_nodes(2708, 1433, 140), lambda: of_nodes(40, 12, 8)),
    "vae": (lambda: of_autoencoder(128), lambda: of_autoencoder(128), lambda: of_autoencoder(4)),
    "physics": (lambda: of_field(256, 8192), lambda: of_field(64, 1024), lambda: of_field(8, 10)),
}
SIZES = ("gpu", "cpu", "small")


def training(work, mode):
    parameters = work.net.parameters()
    if work.is_by_sgd:
        optimizer = torch.optim.SGD(parameters, 0.1, 0.9, weight_decay=1e-4, fused=True)
    else:
        optimizer = torch.optim.AdamW(parameters, work.rate_of_adam, fused=True)
    error = mode.of(work.error)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=work.dtype == torch.bfloat16):
            loss = error(work.x, work.y)
        loss.backward()
        optimizer.step()

    return mode.run(step)


def inference(work, mode):
    net = work.net.eval().to(work.dtype)
    x = work.x.to(work.dtype) if work.x.is_floating_point() else work.x
    forward = mode.of(net)

    def call():
        with torch.no_grad():
            forward(x)

    return mode.run(call)


STEPS = {"train": training, "infer": inference}


def step_of(name, step, mode, size):
    torch.manual_seed(0)
    work = NETS[name][SIZES.index(size)]()
    if size == "cpu":  # in float32 and row-major
        work.net, work.x = (each.to(memory_format=torch.contiguous_format) for each in (work.net, work.x))
        work.dtype, work.rate_of_adam = torch.float32, 1e-6  # a batch known by heart has subnormal gradients
    return STEPS[step](work, mode)


@workload(r"nets/(\w+)/(train|infer)/eager")
def net_on_cpu(name, step):
    global DEVICE
    DEVICE = "cpu"
    call = step_of(name, step, EAGER, "cpu")
    return lambda: on_host(call, min_seconds=1)


@workload(r"cuda_nets/(\w+)/(train|infer)/compiled(?:_graph)?")
def net_in_fastest_mode(name, step):
    set_fastest()

    def measure(call):
        return on_host(call, DEVICE, calls=10, min_seconds=1)

    return in_fastest_mode(lambda mode: step_of(name, step, mode, "gpu"), compile_modes(), DEVICE, measure)


# ---- the program


def measure(call, calls=10, rounds=3):
    """Milliseconds of a call, the seconds that the first took, and the most memory in GiB."""
    start = time.perf_counter()
    call()
    synchronize(DEVICE)
    first = time.perf_counter() - start
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    call()  # the modes with CUDA graphs capture in the second and third
    call()
    seconds = statistics.median(on_host(call, DEVICE, calls, 0.1)["seconds"] for _ in range(rounds))
    peak = torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else None
    return {"ms": seconds * 1e3, "first_s": first, "peak_gib": peak}


def measured(name, step, mode, size):
    try:
        free_memory()
        return measure(step_of(name, step, mode, size))
    except Exception as error:  # noqa: BLE001, a mode that a net does not have must not end the others
        lines = str(error).splitlines() or [""]
        return {"error": f"{type(error).__name__}: {lines[0]}"}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--steps", default="train,infer")
    parser.add_argument("--modes", default="default,reduce-overhead")
    parser.add_argument("--size", choices=SIZES, default="gpu")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    set_fastest()
    start, rows = time.perf_counter(), []
    for name in arguments.nets.split(","):
        for step in arguments.steps.split(","):
            for mode in arguments.modes.split(","):
                row = measured(name, step, Mode("" if mode == "eager" else mode), arguments.size)
                rows.append({"net": name, "step": step, "mode": mode, **row})
                print(json.dumps(rows[-1]), f"# {time.perf_counter() - start:.0f} s", flush=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
