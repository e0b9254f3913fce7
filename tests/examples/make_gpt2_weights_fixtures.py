#!/usr/bin/env python3
"""Writes gpt2_weights.json for gpt2_weights.cpp: the tensors of a small GPT-2 as a file of Hugging Face's holds them, and
the logits and the loss of that model, by PyTorch.

The values of the tensors are not stored, they follow from their place: see `value`. Run it with a Python that has
PyTorch: python3 tests/examples/make_gpt2_weights_fixtures.py
"""

import json
import pathlib

import torch
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
VOCABULARY, POSITIONS, LAYERS, HEADS, WIDTH = 29, 12, 2, 2, 16


def shapes():
    yield "wte.weight", (VOCABULARY, WIDTH)
    yield "wpe.weight", (POSITIONS, WIDTH)
    for i in range(LAYERS):
        for part, inputs, outputs in [
            ("ln_1", None, WIDTH),
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("ln_2", None, WIDTH),
            ("mlp.c_fc", WIDTH, 4 * WIDTH),
            ("mlp.c_proj", 4 * WIDTH, WIDTH),
        ]:
            yield f"h.{i}.{part}.weight", (inputs, outputs) if inputs else (outputs,)
            yield f"h.{i}.{part}.bias", (outputs,)
    yield "ln_f.weight", (WIDTH,)
    yield "ln_f.bias", (WIDTH,)


def value(index, shape):
    """Tensor number `index`: element k is sin(1 + index + 0.37 k) / 2, and 1 more for the weight of a normalisation."""
    k = torch.arange(torch.Size(shape).numel())
    return (torch.sin(1 + index + 0.37 * k) / 2).reshape(shape)


TENSORS = dict(shapes())
W = {}
for index, (name, shape) in enumerate(TENSORS.items()):
    W[name] = value(index, shape) + (1 if "ln_" in name and name.endswith("weight") else 0)


def affine(x, name):
    return x @ W[name + ".weight"] + W[name + ".bias"]


def norm(x, name):
    return F.layer_norm(x, (WIDTH,), W[name + ".weight"], W[name + ".bias"])


def attention(x, name):
    time = x.shape[0]
    q, k, v = affine(x, name + ".c_attn").split(WIDTH, dim=-1)
    heads = []
    for h in range(HEADS):
        part = slice(h * WIDTH // HEADS, (h + 1) * WIDTH // HEADS)
        scores = q[:, part] @ k[:, part].T / (WIDTH // HEADS) ** 0.5
        scores = scores.masked_fill(torch.ones(time, time).triu(1).bool(), float("-inf"))
        heads.append(scores.softmax(-1) @ v[:, part])
    return affine(torch.cat(heads, -1), name + ".c_proj")


def logits(tokens):
    x = W["wte.weight"][tokens] + W["wpe.weight"][: len(tokens)]
    for i in range(LAYERS):
        x = x + attention(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn")
        x = x + affine(F.gelu(affine(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh"), f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ W["wte.weight"].T


tokens = torch.tensor([(7 * i * i + 3 * i + 5) % VOCABULARY for i in range(POSITIONS)])
targets = torch.roll(tokens, -1)
result = logits(tokens)
fixture = {
    "tensors": {name: list(shape) for name, shape in TENSORS.items()},
    "tokens": tokens.tolist(),
    "logits": [[round(x, 8) for x in row] for row in result.tolist()],
    "loss": F.cross_entropy(result, targets).item(),
}
lines = [f"{json.dumps(key)}: {json.dumps(part, separators=(',', ':'))}" for key, part in fixture.items()]
pathlib.Path(__file__).with_name("gpt2_weights.json").write_text("{" + ",\n".join(lines) + "}\n")
