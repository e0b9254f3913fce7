"""PyTorch's side of benchmarks/training.cpp and data_loader.cpp: the same nets, batches and steps.

Where our row is a graph, or a large net, PyTorch's is the fastest of its modes: see torch_modes.py.
"""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from torch_modes import EAGER, all_modes, compile_modes, in_fastest_mode, set_fastest
from torch_timing import on_host, workload

STEPS = {"cpu": 1, "cuda": 50}  # between two waits for the device


def timed_steps(step, device, min_seconds=2):
    return on_host(step, device, calls=STEPS[device], min_seconds=min_seconds)


class Cnn(nn.Module):
    """Two convolutions, a pool and two linear layers: PyTorch's example for MNIST."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.d1, self.d2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.f1, self.f2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x):
        features = self.d1(F.max_pool2d(F.relu(self.c2(F.relu(self.c1(x)))), 2))
        return F.log_softmax(self.f2(self.d2(F.relu(self.f1(features.flatten(1))))), 1)


def mnist_step(batch, device, mode):
    """A step of training, as a function."""
    net = Cnn().to(device)
    optimizer = torch.optim.Adadelta(net.parameters(), 1.0, **({"capturable": True} if mode.captured else {}))
    images, digits = torch.randn(batch, 1, 28, 28, device=device), torch.randint(0, 10, (batch,), device=device)
    forward = mode.of(net)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.nll_loss(forward(images), digits).backward()
        optimizer.step()

    return mode.run(step)


@workload(r"training/mnist/(\d+)")
def mnist(batch):
    step = mnist_step(int(batch), "cpu", EAGER)
    return lambda: timed_steps(step, "cpu")


@workload(r"cuda_training/mnist(_compiled)?/(\d+)")
def mnist_on_cuda(is_compiled, batch):
    set_fastest()
    modes = all_modes() if is_compiled else [EAGER]
    return in_fastest_mode(
        lambda mode: mnist_step(int(batch), "cuda", mode), modes, "cuda", lambda step: timed_steps(step, "cuda"), calls=100
    )


class Block(nn.Module):
    def __init__(self, width, heads, dropout=0.0, is_causal=False, norm_first=True, gelu="none"):
        super().__init__()
        self.heads, self.p, self.is_causal, self.norm_first, self.gelu = heads, dropout, is_causal, norm_first, gelu
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.attn_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def attend(self, x):
        batch, time, width = x.shape
        parts = self.c_attn(x).split(width, 2)
        q, k, v = (t.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for t in parts)
        dropout = self.p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=self.is_causal)
        return self.drop(self.attn_proj(y.transpose(1, 2).reshape(batch, time, width)))

    def feed_forward(self, x):
        return self.drop(self.mlp_proj(F.gelu(self.c_fc(x), approximate=self.gelu)))

    def forward(self, x):  # (B, T, C)
        if self.norm_first:
            x = x + self.attend(self.ln_1(x))
            return x + self.feed_forward(self.ln_2(x))
        x = self.ln_1(x + self.attend(x))
        return self.ln_2(x + self.feed_forward(x))


class Gpt(nn.Module):
    """GPT-2's net."""

    def __init__(self, vocabulary, length, layers, heads, width, dropout=0.0):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout, True, gelu="tanh") for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens, targets=None):  # the scores of those that follow, or the loss
        x = self.drop(self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device)))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return logits if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def gpt_step(model, batch, length, vocabulary, device, autocast, clip, mode, learning_rate=1e-3):
    """A step of training, as a function."""
    model = model.to(device)
    capturable = {"capturable": True} if mode.captured else {}
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, fused=device == "cuda", **capturable)
    tokens, targets = (torch.randint(0, vocabulary, (batch, length), device=device) for _ in range(2))
    forward = mode.of(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=autocast):
            loss = forward(tokens, targets)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return mode.run(step)


@workload(r"training/gpt")
def small_gpt():
    step = gpt_step(Gpt(65, 64, 4, 4, 128), 12, 64, 65, "cpu", autocast=False, clip=False, mode=EAGER)
    return lambda: timed_steps(step, "cpu")


@workload(r"cuda_training/gpt_shakespeare(_graph)?")
@workload(r"cuda_(compile)/gpt_shakespeare")
def shakespeare(graphed):
    set_fastest()

    def make(mode):
        return gpt_step(Gpt(65, 256, 6, 6, 384, 0.2), 64, 256, 65, "cuda", autocast=True, clip=True, mode=mode)

    modes = all_modes() if graphed else [EAGER]
    return in_fastest_mode(make, modes, "cuda", lambda step: timed_steps(step, "cuda"), calls=50)


@workload(r"cuda_training/gpt2(_graph)?/(\d+)")
def gpt2(graphed, batch):
    set_fastest()

    def make(mode):
        model = Gpt(50304, 1024, 12, 12, 768)
        return gpt_step(model, int(batch), 1024, 50257, "cuda", autocast=True, clip=True, mode=mode)

    def measure(step):
        return on_host(step, "cuda", calls=5, min_seconds=2)

    return in_fastest_mode(make, all_modes() if graphed else compile_modes(), "cuda", measure)


@workload(r"cuda_training/(resnet18|resnet50)/(\d+)")
def resnet(name, batch):
    import torchvision

    set_fastest()

    def make(mode):
        model = getattr(torchvision.models, name)().cuda().to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=1e-4, fused=True)
        images = torch.randn(int(batch), 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (int(batch),), device="cuda")
        forward = mode.of(model)

        def step():
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16):
                loss = F.cross_entropy(forward(images), labels)
            loss.backward()
            optimizer.step()

        return mode.run(step)

    return in_fastest_mode(make, compile_modes(), "cuda", lambda step: timed_steps(step, "cuda"))


class Digits(Dataset):
    """As many images as MNIST has to train on, as floats or as bytes that are made floats one by one."""

    MEAN, DEVIATION = torch.tensor(0.1307), torch.tensor(0.3081)

    def __init__(self, kind):
        self.images = torch.randint(0, 256, (60000, 1, 28, 28), dtype=torch.uint8)
        self.targets = torch.randint(0, 10, (60000,))
        self.are_floats = kind == "floats"
        if self.are_floats:
            self.images = self.images.float().div(255)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        image = self.images[index] if self.are_floats else self.images[index].float().div(255)
        return image.sub(self.MEAN).div(self.DEVIATION), self.targets[index]


@workload(r"data_loader/(floats|bytes)/workers:(\d+)")
def data_loader(kind, workers):
    ahead = {"persistent_workers": True, "prefetch_factor": 2} if int(workers) else {}
    loader = DataLoader(Digits(kind), batch_size=64, shuffle=True, num_workers=int(workers), **ahead)

    def measure():
        batches, examples, seconds = iter(loader), 0, 0.0
        next(batches)  # starts the processes
        start = time.perf_counter()
        while seconds < 1:
            for data, _ in batches:
                examples += len(data)
                seconds = time.perf_counter() - start
                if seconds >= 1:
                    break
            else:
                batches = iter(loader)
        return {"seconds": seconds / examples}

    return measure
