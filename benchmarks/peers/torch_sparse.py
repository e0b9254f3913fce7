"""PyTorch's side of benchmarks/sparse.cpp: steps of an embedding with a sparse gradient, products with sparse matrices."""
import warnings

import torch
import torch.nn.functional as F

from torch_timing import on_host, with_peak, workload

BATCH, WIDTH = 4096, 16
OPTIMIZERS = {"sgd": torch.optim.SGD, "sparse_adam": torch.optim.SparseAdam}
warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")


def timed(run, device):
    if device == "cpu":
        return lambda: on_host(run)
    return lambda: with_peak(lambda: on_host(run, device))


@workload(r"sparse/(cpu|cuda)/embedding_(sgd|sparse_adam)/(\d+)")
def embedding_step(device, optimizer, rows):
    rows = int(rows)
    weight = torch.zeros(rows, WIDTH, device=device, requires_grad=True)
    at = torch.randint(0, rows, (BATCH,), device=device)
    scale = torch.randn(BATCH, WIDTH, device=device)
    optimizer = OPTIMIZERS[optimizer]([weight], 0.01)

    def step():
        optimizer.zero_grad()
        (F.embedding(at, weight, sparse=True) * scale).sum().backward()
        optimizer.step()

    return timed(step, device)


def random_csr(n, entries, device):
    """(n, n) with `entries` at random places in each row."""
    stretch = n // entries
    columns = torch.randint(0, stretch, (n, entries), device=device) + torch.arange(entries, device=device) * stretch
    rows = torch.arange(n + 1, device=device) * entries
    return torch.sparse_csr_tensor(rows, columns.view(-1), torch.randn(n * entries, device=device), (n, n))


@workload(r"sparse/(cpu|cuda)/mm_16_by_64/(\d+)")
def sparse_by_dense(device, n):
    a, b = random_csr(int(n), 16, device), torch.randn(int(n), 64, device=device)

    def run():
        with torch.no_grad():
            return torch.sparse.mm(a, b)

    return timed(run, device)
