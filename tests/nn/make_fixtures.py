#!/usr/bin/env python3
"""Writes fixtures.json: parameters, outputs and gradients of PyTorch's modules, for modules.cpp to compare with.

Run it with a Python that has PyTorch: python3 tests/nn/make_fixtures.py
"""

import json
import pathlib

import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


def real(*shape):
    return torch.randn(shape).mul(1000).round().div(1000)


def positive(*shape):
    return torch.rand(shape).mul(900).round().div(1000) + 0.05


def classes(count, *shape):
    return torch.randint(0, count, shape)


# Name, as modules.cpp knows it; the module; its inputs.
CASES = [
    ("Linear(4, 3)", nn.Linear(4, 3), [real(2, 5, 4)]),
    ("Linear(4, 3) without bias", nn.Linear(4, 3, bias=False), [real(2, 4)]),
    ("Bilinear(2, 3, 4)", nn.Bilinear(2, 3, 4), [real(5, 2), real(5, 3)]),
    ("Flatten", nn.Flatten(), [real(2, 3, 2)]),
    ("Unflatten", nn.Unflatten(1, (2, 3)), [real(2, 6)]),
    ("Conv1d", nn.Conv1d(2, 4, 3, stride=2, padding=1), [real(2, 2, 7)]),
    ("Conv2d", nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2), [real(2, 4, 6, 5)]),
    ("Conv2d unbatched", nn.Conv2d(1, 2, 3), [real(1, 5, 4)]),
    ("Conv2d same", nn.Conv2d(1, 2, (3, 4), padding="same", dilation=2, bias=False), [real(1, 1, 5, 6)]),
    ("Conv2d valid", nn.Conv2d(1, 2, 2, padding="valid"), [real(1, 1, 3, 4)]),
    ("Conv2d reflect", nn.Conv2d(1, 2, 3, padding=(2, 1), padding_mode="reflect"), [real(2, 1, 4, 3)]),
    ("Conv1d replicate", nn.Conv1d(1, 2, 3, padding=3, padding_mode="replicate"), [real(2, 1, 4)]),
    ("Conv2d circular same", nn.Conv2d(1, 1, (2, 3), padding="same", padding_mode="circular"), [real(1, 1, 3, 4)]),
    ("Conv3d", nn.Conv3d(1, 2, 2), [real(1, 1, 3, 2, 3)]),
    ("BatchNorm1d(3)", nn.BatchNorm1d(3), [real(4, 3)]),
    ("BatchNorm1d(3) of sequences", nn.BatchNorm1d(3), [real(2, 3, 4)]),
    ("BatchNorm2d(2) cumulative", nn.BatchNorm2d(2, momentum=None), [real(2, 2, 3, 2)]),
    ("BatchNorm2d(2) evaluated", nn.BatchNorm2d(2).eval(), [real(2, 2, 2, 2)]),
    ("BatchNorm2d(2) untracked", nn.BatchNorm2d(2, track_running_stats=False, affine=False), [real(2, 2, 2, 2)]),
    ("BatchNorm3d(1)", nn.BatchNorm3d(1, eps=0.1, momentum=0.5), [real(2, 1, 2, 2, 2)]),
    ("LayerNorm({3, 4})", nn.LayerNorm([3, 4]), [real(2, 3, 4)]),
    ("LayerNorm({4}) without bias", nn.LayerNorm([4], bias=False, eps=0.1), [real(3, 4)]),
    ("GroupNorm(2, 4)", nn.GroupNorm(2, 4), [real(2, 4, 3)]),
    ("RMSNorm({4})", nn.RMSNorm([4]), [real(3, 4)]),
    ("Embedding(5, 3)", nn.Embedding(5, 3, padding_idx=-4), [classes(5, 2, 6)]),
    ("Embedding(5, 3) limited", nn.Embedding(5, 3, max_norm=1.0), [classes(5, 6)]),
    ("LSTM(3, 4)", nn.LSTM(3, 4), [real(5, 2, 3)]),
    ("LSTM(3, 2) of all kinds", nn.LSTM(3, 2, num_layers=2, bidirectional=True, batch_first=True), [real(2, 4, 3)]),
    ("LSTM(3, 2) unbatched", nn.LSTM(3, 2, bias=False), [real(4, 3)]),
    ("LSTMCell(3, 2)", nn.LSTMCell(3, 2), [real(4, 3)]),
    ("MaxPool1d", nn.MaxPool1d(3, 2, 1), [real(1, 2, 7)]),
    ("MaxPool2d", nn.MaxPool2d((2, 3), stride=(2, 1), padding=(0, 1), ceil_mode=True), [real(1, 2, 5, 4)]),
    ("MaxPool3d", nn.MaxPool3d(2), [real(1, 1, 2, 4, 2)]),
    ("AvgPool1d", nn.AvgPool1d(2, padding=1), [real(1, 2, 4)]),
    ("AvgPool2d", nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), [real(1, 1, 5, 4)]),
    ("AvgPool3d", nn.AvgPool3d(2, divisor_override=3), [real(1, 1, 2, 2, 4)]),
    ("AdaptiveAvgPool1d", nn.AdaptiveAvgPool1d(3), [real(1, 2, 5)]),
    ("AdaptiveAvgPool2d", nn.AdaptiveAvgPool2d((2, None)), [real(1, 1, 5, 3)]),
    ("AdaptiveAvgPool3d", nn.AdaptiveAvgPool3d(1), [real(1, 2, 2, 2, 2)]),
    ("ReLU", nn.ReLU(), [real(6)]),
    ("ReLU6", nn.ReLU6(), [real(6) * 8]),
    ("ELU", nn.ELU(0.7), [real(6)]),
    ("SELU", nn.SELU(), [real(6)]),
    ("CELU", nn.CELU(1.5), [real(6)]),
    ("LeakyReLU", nn.LeakyReLU(0.2), [real(6)]),
    ("GELU", nn.GELU(), [real(6)]),
    ("GELU tanh", nn.GELU(approximate="tanh"), [real(6)]),
    ("SiLU", nn.SiLU(), [real(6)]),
    ("Mish", nn.Mish(), [real(6)]),
    ("Hardswish", nn.Hardswish(), [real(6) * 3]),
    ("Hardsigmoid", nn.Hardsigmoid(), [real(6) * 3]),
    ("Hardtanh", nn.Hardtanh(-0.5, 0.8), [real(6)]),
    ("Softplus", nn.Softplus(2.0, 1.0), [real(6)]),
    ("GLU", nn.GLU(1), [real(3, 4)]),
    ("Sigmoid", nn.Sigmoid(), [real(6)]),
    ("Tanh", nn.Tanh(), [real(6)]),
    ("LogSigmoid", nn.LogSigmoid(), [real(6)]),
    ("Softsign", nn.Softsign(), [real(6)]),
    ("Tanhshrink", nn.Tanhshrink(), [real(6)]),
    ("Softmax", nn.Softmax(1), [real(2, 4)]),
    ("Softmin", nn.Softmin(0), [real(2, 4)]),
    ("LogSoftmax", nn.LogSoftmax(-1), [real(2, 4)]),
    ("CrossEntropyLoss", nn.CrossEntropyLoss(), [real(5, 4), classes(4, 5)]),
    (
        "CrossEntropyLoss weighted",
        nn.CrossEntropyLoss(weight=positive(4), ignore_index=2, label_smoothing=0.1, reduction="sum"),
        [real(3, 4, 2), classes(4, 3, 2)],
    ),
    ("CrossEntropyLoss of probabilities", nn.CrossEntropyLoss(), [real(3, 4), positive(3, 4)]),
    ("NLLLoss", nn.NLLLoss(weight=positive(4), reduction="none"), [real(5, 4), classes(4, 5)]),
    ("MSELoss", nn.MSELoss(), [real(2, 3), real(2, 3)]),
    ("L1Loss", nn.L1Loss(reduction="sum"), [real(2, 3), real(2, 3)]),
    ("SmoothL1Loss", nn.SmoothL1Loss(beta=0.5), [real(2, 3), real(2, 3)]),
    ("HuberLoss", nn.HuberLoss(delta=0.6), [real(2, 3), real(2, 3)]),
    ("BCELoss", nn.BCELoss(weight=positive(3)), [positive(2, 3), positive(2, 3)]),
    ("BCEWithLogitsLoss", nn.BCEWithLogitsLoss(pos_weight=positive(3)), [real(2, 3), positive(2, 3)]),
    ("KLDivLoss", nn.KLDivLoss(reduction="batchmean"), [real(2, 3), positive(2, 3)]),
]


def number(value):
    return round(value, 10) if isinstance(value, float) else value


def tensor(t):
    return None if t is None else {"shape": list(t.shape), "data": [number(v) for v in t.detach().flatten().tolist()]}


def flatten(outputs):
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    return [tensor for output in outputs for tensor in flatten(output)]


def states(module):
    return {name: tensor(value) for name, value in module.state_dict().items()}


def run(module, inputs):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(real(*parameter.shape))
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                parameter[module.padding_idx] = 0
    before = states(module)
    inputs = [i.requires_grad_() if i.is_floating_point() else i for i in inputs]
    outputs = flatten(module(*inputs))
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


lines = [f"{json.dumps(name)}: {json.dumps(run(module, inputs))}" for name, module, inputs in CASES]
pathlib.Path(__file__).with_name("fixtures.json").write_text("{" + ",\n".join(lines) + "}\n")
