#!/usr/bin/env python3
"""Writes mt19937.json: what PyTorch draws on the CPU, call after call from one seed, for mt19937.cpp to draw again.

Run it on an x86-64 processor with AVX2 and a Python that has PyTorch: python3 tests/ops/random/make_mt19937_fixtures.py
"""

import json
import pathlib

import torch

SEED = 2**33 + 7
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]
WEIGHTS = torch.tensor([[0.1, 0.0, 2.0, 0.5, 1.0], [3.0, 0.2, 0.0, 0.1, 0.7]])

# Name, as mt19937.cpp knows it; what fills a tensor; dtypes.
FILLS = [
    ("uniform", lambda t: t.uniform_(-1, 3), FLOATS),
    ("normal", lambda t: t.normal_(0.5, 2), FLOATS),
    ("log_normal", lambda t: t.log_normal_(0.5, 0.25), FLOATS),
    ("cauchy", lambda t: t.cauchy_(1, 2), FLOATS),
    ("exponential", lambda t: t.exponential_(1.5), FLOATS),
    ("geometric", lambda t: t.geometric_(0.3), FLOATS + [torch.int32]),
    ("bernoulli", lambda t: t.bernoulli_(0.3), FLOATS + INTEGERS),
    ("bernoulli of floats", lambda t: t.bernoulli_(torch.full((t.numel(),), 0.3)), [torch.float32]),
    ("bernoulli of doubles", lambda t: t.bernoulli_(torch.full((t.numel(),), 0.3, dtype=torch.float64)), [torch.float32]),
    ("random", lambda t: t.random_(), FLOATS + INTEGERS),
    ("random from to", lambda t: t.random_(-3, 100), [torch.float32, torch.int32, torch.int64]),
    ("random in 2^40", lambda t: t.random_(0, 2**40), [torch.int64]),
    ("random of all", lambda t: t.random_(-(2**63), None), [torch.int64]),
]
CALLS = [
    ("randperm", lambda: torch.randperm(20)),
    ("multinomial", lambda: torch.multinomial(WEIGHTS, 3)),
    ("multinomial of one", lambda: torch.multinomial(WEIGHTS, 1, True)),
    ("multinomial with replacement", lambda: torch.multinomial(WEIGHTS, 6, True)),
    ("dropout", lambda: torch.nn.functional.dropout(torch.ones(12), 0.3)),
    ("transposed", lambda: torch.empty(3, 4).t().uniform_()),
    ("strided", lambda: torch.zeros(6, 4)[:, ::2].uniform_()),
]

torch.manual_seed(SEED)
steps = []


def record(name, result):
    values = result.to(torch.int64 if result.dtype is torch.bool else result.dtype).flatten().tolist()
    steps.append({"name": name, "dtype": str(result.dtype).removeprefix("torch."), "values": values})


for name, fill, dtypes in FILLS:
    for dtype in dtypes:
        for n in [7, 21]:
            record(name, fill(torch.empty(n, dtype=dtype)))
for name, call in CALLS:
    record(name, call())
text = ",\n".join(json.dumps(step) for step in steps)
pathlib.Path(__file__).with_name("mt19937.json").write_text(f'{{"seed": {SEED}, "steps": [\n{text}\n]}}\n')
