#!/usr/bin/env python3
"""PyTorch's side of benchmarks/sparse.cpp: microseconds of each.

usage: sparse_torch.py [cpu | cuda]
"""

import sys
import time
import warnings

import torch

BATCH, WIDTH = 4096, 16
DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"
warnings.filterwarnings("ignore")
torch.manual_seed(1)


def finish():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def microseconds(run, runs=50):
    for _ in range(5):
        run()
    finish()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        finish()
        times.append(time.perf_counter() - begin)
    return sorted(times)[runs // 2] * 1e6


def embedding(rows, make_optimizer):
    weight = torch.zeros(rows, WIDTH, device=DEVICE, requires_grad=True)
    at = torch.randint(0, rows, (BATCH,), device=DEVICE)
    scale = torch.randn(BATCH, WIDTH, device=DEVICE)
    optimizer = make_optimizer([weight])

    def step():
        optimizer.zero_grad()
        (torch.nn.functional.embedding(at, weight, sparse=True) * scale).sum().backward()
        optimizer.step()

    return microseconds(step)


def random_csr(n, entries):
    stretch = n // entries
    col = torch.randint(0, stretch, (n, entries), device=DEVICE) + torch.arange(entries, device=DEVICE) * stretch
    crow = torch.arange(n + 1, device=DEVICE) * entries
    return torch.sparse_csr_tensor(crow, col.view(-1), torch.randn(n * entries, device=DEVICE), (n, n))


for rows in (100_000, 1_000_000, 10_000_000):
    print(f"sparse/{DEVICE}/embedding_sgd/{rows} {embedding(rows, lambda p: torch.optim.SGD(p, 0.01)):.0f}")
    print(f"sparse/{DEVICE}/embedding_sparse_adam/{rows} {embedding(rows, lambda p: torch.optim.SparseAdam(p, 0.01)):.0f}")
n = 1_000_000 if DEVICE == "cuda" else 100_000
a, b = random_csr(n, 16), torch.randn(n, 64, device=DEVICE)
with torch.no_grad():
    print(f"sparse/{DEVICE}/mm_16_by_64/{n} {microseconds(lambda: torch.sparse.mm(a, b)):.0f}")
