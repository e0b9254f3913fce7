#!/usr/bin/env python3
"""PyTorch's side of benchmarks/data_loader.cpp: torch.utils.data.DataLoader over MNIST's training set.

usage: data_loader_torch.py FOLDER [WORKERS...]   FOLDER holds train-images-idx3-ubyte and train-labels-idx1-ubyte
"""
import pathlib
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCH = 64
MIN_SECONDS = 2
MEAN, DEVIATION = torch.tensor([0.1307]).view(1, 1, 1), torch.tensor([0.3081]).view(1, 1, 1)


def read_idx(path, header):
    return torch.frombuffer(bytearray(path.read_bytes()[header:]), dtype=torch.uint8)


class Floats(Dataset):
    """Images that are floats already."""

    def __init__(self, folder):
        self.images = read_idx(folder / "train-images-idx3-ubyte", 16).view(-1, 1, 28, 28).float().div(255)
        self.targets = read_idx(folder / "train-labels-idx1-ubyte", 8).long()

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return self.images[index].sub(MEAN).div(DEVIATION), self.targets[index]


class Bytes(Floats):
    """Images as bytes, made floats one by one."""

    def __init__(self, folder):
        super().__init__(folder)
        self.images = self.images.mul(255).round().to(torch.uint8)

    def __getitem__(self, index):
        return self.images[index].float().div(255).sub(MEAN).div(DEVIATION), self.targets[index]


def measure(dataset, workers):
    ahead = {"persistent_workers": True, "prefetch_factor": 2} if workers else {}
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=workers, **ahead)
    next(iter(loader))  # starts the processes
    examples, start, seconds = 0, time.perf_counter(), 0.0
    while seconds < MIN_SECONDS:
        for data, _ in loader:
            examples += len(data)
        seconds = time.perf_counter() - start
    name = type(dataset).__name__.lower()
    print(f"PyTorch {name} workers {workers}: {examples / seconds:.0f} examples/s", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    for dataset in (Floats(folder), Bytes(folder)):
        for workers in [int(each) for each in sys.argv[2:]] or [0, 4]:
            measure(dataset, workers)
