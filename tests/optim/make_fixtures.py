#!/usr/bin/env python3
"""Writes fixtures.json: what PyTorch's optimisers and schedules do, for optimizers.cpp and schedulers.cpp to compare with.

Run it with a Python that has PyTorch: python3 tests/optim/make_fixtures.py
"""

import json
import math
import pathlib

import torch

STEPS = 100
KEPT = (1, 2, 10, 100)

OPTIMIZERS = {
    "SGD": [
        {"lr": 0.05},
        {"lr": 0.05, "weight_decay": 0.1, "maximize": True},
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01},
        {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    ],
    "Adam": [
        {"lr": 0.01},
        {"lr": 0.01, "betas": [0.8, 0.99], "eps": 1e-6, "weight_decay": 0.1},
        {"lr": 0.01, "amsgrad": True, "betas": [0.3, 0.9]},
        {"lr": 0.01, "maximize": True},
    ],
    "AdamW": [
        {"lr": 0.01},
        {"lr": 0.01, "betas": [0.9, 0.95], "weight_decay": 0.1},
        {"lr": 0.01, "amsgrad": True, "weight_decay": 0.2},
    ],
}


def start(number, count):
    return [math.sin(1.7 * number + 0.9 * i) for i in range(count)]


def gradient(param, step, number):
    """Pulls towards zero, and waves; the test computes the same."""
    wave = [math.cos(0.3 * step + number + 0.5 * i) for i in range(param.numel())]
    return 0.5 * param.detach() + torch.tensor(wave, dtype=torch.float64).to(param.dtype)


def run_optimizer(name, options, dtype):
    params = [torch.tensor(start(n, count), dtype=torch.float64).to(dtype).requires_grad_() for n, count in ((0, 7), (1, 3))]
    optimizer = getattr(torch.optim, name)(params, foreach=False, **options)
    kept = {}
    for step in range(1, STEPS + 1):
        for n, param in enumerate(params):
            # The second parameter has no gradient in every third step.
            param.grad = None if n == 1 and step % 3 == 0 else gradient(param, step, n)
        optimizer.step()
        if step in KEPT:
            kept[step] = [value for param in params for value in param.double().tolist()]
    return {"optimizer": name, "options": options, "dtype": str(dtype).removeprefix("torch."), "params": kept}


def schedules():
    s = torch.optim.lr_scheduler
    yield "StepLR(3, 0.5)", lambda o: s.StepLR(o, 3, 0.5)
    yield "MultiStepLR({2, 5, 5, 9}, 0.3)", lambda o: s.MultiStepLR(o, [2, 5, 5, 9], 0.3)
    yield "ExponentialLR(0.9)", lambda o: s.ExponentialLR(o, 0.9)
    yield "LinearLR(0.1, 0.8, 7)", lambda o: s.LinearLR(o, 0.1, 0.8, 7)
    yield "CosineAnnealingLR(6, 0.01)", lambda o: s.CosineAnnealingLR(o, 6, 0.01)
    yield "LambdaLR(1 / (1 + epoch))", lambda o: s.LambdaLR(o, lambda epoch: 1 / (1 + epoch))
    yield "OneCycleLR(0.5, 20)", lambda o: s.OneCycleLR(o, 0.5, 20)
    yield "OneCycleLR(0.5, 20, linear, three phases)", lambda o: s.OneCycleLR(
        o, 0.5, 20, anneal_strategy="linear", three_phase=True, pct_start=0.4
    )
    yield "SequentialLR(LinearLR, CosineAnnealingLR, ExponentialLR)", lambda o: s.SequentialLR(
        o,
        [s.LinearLR(o, 0.25, 1.0, 4), s.CosineAnnealingLR(o, 8, 0.02), s.ExponentialLR(o, 0.8)],
        [4, 12],
    )
    yield "StepLR and ExponentialLR together", lambda o: [s.StepLR(o, 3, 0.5), s.ExponentialLR(o, 0.9)]


def run_schedule(make):
    params = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.Adam([{"params": params[:1]}, {"params": params[1:], "lr": 0.2}], lr=0.1)
    made = make(optimizer)
    running = made if isinstance(made, list) else [made]
    rates, momenta = [], []
    for _ in range(20):
        rates.append([group["lr"] for group in optimizer.param_groups])
        momenta.append(optimizer.param_groups[0]["betas"][0])
        optimizer.step()
        for schedule in running:
            schedule.step()
    return {"lrs": rates, "beta1": momenta}


fixtures = {
    "optimizers": [
        run_optimizer(name, options, dtype)
        for name, cases in OPTIMIZERS.items()
        for options in cases
        for dtype in (torch.float64, torch.float32)
    ],
    "schedules": {name: run_schedule(make) for name, make in schedules()},
}
text = json.dumps(fixtures)
pathlib.Path(__file__).with_name("fixtures.json").write_text(text.replace('{"optimizer"', '\n{"optimizer"').replace('"lrs"', '\n"lrs"') + "\n")
