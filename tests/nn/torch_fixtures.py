"""What the scripts that write fixtures of PyTorch's modules share: see torch_fixtures.h for the test's side."""

import json
import pathlib

import torch
from torch import nn


def start(seed):
    torch.manual_seed(seed)
    torch.set_default_dtype(torch.float64)


def real(*shape):
    return torch.randn(shape).mul(1000).round().div(1000)


def positive(*shape):
    return torch.rand(shape).mul(900).round().div(1000) + 0.05


def classes(count, *shape):
    return torch.randint(0, count, shape)


def number(value):
    return round(value, 10) if isinstance(value, float) else value


def tensor(t):
    return None if t is None else {"shape": list(t.shape), "data": [number(v) for v in t.detach().flatten().tolist()]}


def flatten(outputs):
    if outputs is None:
        return []
    if isinstance(outputs, nn.utils.rnn.PackedSequence):
        return [outputs.data]
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    return [tensor for output in outputs for tensor in flatten(output)]


def states(module):
    return {name: tensor(value) for name, value in module.state_dict().items()}


def run(module, inputs, call=None):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(real(*parameter.shape))
        padding_idx = getattr(module, "padding_idx", None)
        if padding_idx is not None:
            module.weight[padding_idx] = 0
    before = states(module)
    inputs = [i.requires_grad_() if i.is_floating_point() else i for i in inputs]
    outputs = flatten(call(module, *inputs) if call else module(*inputs))
    # The test computes the same sum.
    loss = sum((o * torch.arange(1, o.numel() + 1).reshape(o.shape).sin()).sum() for o in outputs)
    loss.backward()
    return {
        "inputs": [tensor(i) for i in inputs],
        "state": before,
        "parameters": [name for name, _ in module.named_parameters()],
        "outputs": [tensor(o) for o in outputs],
        "input_grads": [tensor(i.grad) for i in inputs],
        "grads": {name: tensor(parameter.grad) for name, parameter in module.named_parameters()},
        "changed_state": {n: v for n, v in states(module).items() if v != before[n]},
    }


def write(script, cases, name):
    """Writes `name` beside the script. A case: its name, the module, its inputs and, optionally, how it is called."""
    lines = [f"{json.dumps(case[0])}: {json.dumps(run(*case[1:]))}" for case in cases]
    pathlib.Path(script).with_name(name).write_text("{" + ",\n".join(lines) + "}\n")
