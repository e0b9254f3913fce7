"""PyTorch's side of benchmarks/training.cpp and data_loader.cpp: the same nets, batches and steps.

With torch.compile where our row is a graph, or a large net: that is the way in which PyTorch is fastest.
"""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from torch_timing import on_host, with_peak, workload

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


@workload(r"(training|cuda_training)/mnist(_graph)?/(\d+)")
def mnist(where, graphed, batch):
    device = "cuda" if where == "cuda_training" else "cpu"
    net = Cnn().to(device)
    options = {"capturable": True} if graphed else {}
    optimizer = torch.optim.Adadelta(net.parameters(), 1.0, **options)
    images, digits = torch.randn(int(batch), 1, 28, 28, device=device), torch.randint(0, 10, (int(batch),), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.nll_loss(net(images), digits).backward()
        optimizer.step()

    run = as_cuda_graph(step) if graphed else step
    return lambda: timed_steps(run, device)


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.p = heads, dropout
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.attn_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):  # (B, T, C)
        batch, time, width = x.shape
        parts = self.c_attn(self.ln_1(x)).split(width, 2)
        q, k, v = (t.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True)
        x = x + self.drop(self.attn_proj(y.transpose(1, 2).reshape(batch, time, width)))
        hidden = F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh")
        return x + self.drop(self.mlp_proj(hidden))


class Gpt(nn.Module):
    """GPT-2's net; forward() gives the loss."""

    def __init__(self, vocabulary, length, layers, heads, width, dropout=0.0):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.drop(self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device)))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def gpt_step(model, batch, length, vocabulary, device, autocast, clip, compiled, learning_rate=1e-3):
    """A step of training, as a function."""
    torch.set_float32_matmul_precision("high")
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, fused=device == "cuda")
    tokens, targets = (torch.randint(0, vocabulary, (batch, length), device=device) for _ in range(2))
    forward = torch.compile(model) if compiled else model

    def step():
        with torch.autocast(device, torch.bfloat16, enabled=autocast):
            loss = forward(tokens, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


@workload(r"training/gpt")
def small_gpt():
    step = gpt_step(Gpt(65, 64, 4, 4, 128), 12, 64, 65, "cpu", autocast=False, clip=False, compiled=False)
    return lambda: timed_steps(step, "cpu")


@workload(r"cuda_training/gpt_shakespeare(_graph)?")
def shakespeare(graphed):
    step = gpt_step(Gpt(65, 256, 6, 6, 384, 0.2), 64, 256, 65, "cuda", autocast=True, clip=True, compiled=bool(graphed))
    return lambda: timed_steps(step, "cuda")


@workload(r"cuda_training/gpt2(?:_graph)?/(\d+)")
def gpt2(batch):
    step = gpt_step(Gpt(50304, 1024, 12, 12, 768), int(batch), 1024, 50257, "cuda", autocast=True, clip=True, compiled=True)
    step()
    return lambda: with_peak(lambda: on_host(step, "cuda", calls=5, min_seconds=2))


@workload(r"cuda_training/(resnet18|resnet50)/(\d+)")
def resnet(name, batch):
    import torchvision

    torch.backends.cudnn.benchmark = True
    model = getattr(torchvision.models, name)().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=1e-4)
    images = torch.randn(int(batch), 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (int(batch),), device="cuda")
    forward = torch.compile(model)

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(forward(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return lambda: timed_steps(step, "cuda")


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
