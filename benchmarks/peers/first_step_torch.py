#!/usr/bin/env python3
"""PyTorch's side of the time from a process's start to its first finished step of GPT-2: what `gpt2 --max_iters 1` does
but for the reading of a text, with random tokens in its place. Says so when the step is done.

usage: first_step_torch.py cpu|cuda BATCH LENGTH
"""
import sys

import torch

from torch_modes import EAGER
from torch_training import Gpt, gpt_step


def main(device, batch, length):
    batch, length = int(batch), int(length)
    step = gpt_step(
        Gpt(50304, length, 12, 12, 768), batch, length, 50257, device,
        autocast=device == "cuda", clip=True, mode=EAGER, learning_rate=6e-4,
    )
    print(f"step 1: loss {step().item():.4f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
