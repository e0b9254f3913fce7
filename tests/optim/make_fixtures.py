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
    "RMSprop": [
        {"lr": 0.01},
        {"lr": 0.01, "alpha": 0.9, "eps": 1e-6, "weight_decay": 0.1, "momentum": 0.8},
        {"lr": 0.01, "centered": True, "momentum": 0.5, "maximize": True},
    ],
    "Adagrad": [
        {"lr": 0.1},
        {"lr": 0.1, "lr_decay": 0.02, "weight_decay": 0.1, "initial_accumulator_value": 0.3, "eps": 1e-6},
        {"lr": 0.1, "maximize": True},
    ],
    "Adadelta": [
        {},
        {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1},
        {"lr": 2.0, "maximize": True},
    ],
    "NAdam": [
        {},
        {"lr": 0.01, "betas": [0.8, 0.99], "eps": 1e-6, "weight_decay": 0.1, "momentum_decay": 0.02},
        {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RAdam": [
        {},
        {"lr": 0.05, "betas": [0.8, 0.99], "eps": 1e-6, "weight_decay": 0.1},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "Adamax": [
        {},
        {"lr": 0.05, "betas": [0.8, 0.99], "eps": 1e-6, "weight_decay": 0.1},
        {"lr": 0.05, "maximize": True},
    ],
    "ASGD": [
        {},
        {"lr": 0.1, "lambd": 0.01, "alpha": 0.5, "t0": 20, "weight_decay": 0.1},
        {"lr": 0.05, "t0": 0, "maximize": True},
    ],
    "Rprop": [
        {},
        {"lr": 0.05, "etas": [0.3, 1.5], "step_sizes": [1e-3, 0.2]},
        {"lr": 0.05, "maximize": True},
    ],
    "Adafactor": [
        {},
        {"lr": 0.1, "beta2_decay": -0.5, "eps": [1e-4, 0.01], "d": 1.5, "weight_decay": 0.1},
        {"lr": 0.1, "maximize": True},
    ],
    "Muon": [
        {},
        {"lr": 0.05, "weight_decay": 0.01, "momentum": 0.8, "nesterov": False, "ns_steps": 3},
        {"lr": 0.05, "ns_coefficients": [3.0, -4.0, 2.0], "adjust_lr_fn": "match_rms_adamw"},
    ],
}
VECTORS = [[7], [3]]
MATRICES = [[3, 5], [4, 2]]
SHAPES = {"Adafactor": [VECTORS, MATRICES], "Muon": [MATRICES]}

LBFGS = [
    {"lr": 0.1, "history_size": 5, "max_iter": 1},
    {"lr": 0.5, "max_iter": 4, "max_eval": 3, "history_size": 3},
    {"line_search_fn": "strong_wolfe", "max_iter": 2, "history_size": 4},
    {"lr": 3.0, "line_search_fn": "strong_wolfe", "max_iter": 3, "max_eval": 9},
    {"lr": 8.0, "line_search_fn": "strong_wolfe", "max_iter": 5},
]


def start(number, count):
    return [math.sin(1.7 * number + 0.9 * i) for i in range(count)]


def gradient(param, step, number):
    """Pulls towards zero, and waves; the test computes the same."""
    wave = [math.cos(0.3 * step + number + 0.5 * i) for i in range(param.numel())]
    return 0.5 * param.detach() + torch.tensor(wave, dtype=torch.float64).to(param.dtype).reshape(param.shape)


def run_optimizer(name, options, shapes, dtype):
    starts = [torch.tensor(start(n, math.prod(shape)), dtype=torch.float64) for n, shape in enumerate(shapes)]
    params = [values.to(dtype).reshape(shape).requires_grad_() for values, shape in zip(starts, shapes)]
    loops = {} if name == "Muon" else {"foreach": False}
    optimizer = getattr(torch.optim, name)(params, **loops, **options)
    kept = {}
    for step in range(1, STEPS + 1):
        for n, param in enumerate(params):
            # The second parameter has no gradient in every third step.
            param.grad = None if n == 1 and step % 3 == 0 else gradient(param, step, n)
        optimizer.step()
        if step in KEPT:
            kept[step] = [value for param in params for value in param.double().flatten().tolist()]
    dtype_name = str(dtype).removeprefix("torch.")
    return {"optimizer": name, "options": options, "dtype": dtype_name, "shapes": shapes, "params": kept}


def run_lbfgs(options):
    """Minimises Rosenbrock's function in eight dimensions, held by two parameters. (A minimum that moves would make the
    search chaotic: nothing to compare.)"""
    params = [torch.tensor(start(n, count)).requires_grad_() for n, count in ((0, 5), (1, 3))]
    optimizer = torch.optim.LBFGS(params, tolerance_grad=1e-10, tolerance_change=1e-12, **options)
    kept, calls = {}, 0
    for step in range(1, STEPS + 1):

        def closure():
            nonlocal calls
            calls += 1
            optimizer.zero_grad()
            x = torch.cat(params)
            a, b = x[:-1], x[1:]
            loss = (5 * (b - a * a).square() + (1 - a).square()).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        if step in KEPT + (5, 20):
            kept[step] = [value for param in params for value in param.tolist()]
    return {"options": options, "params": kept, "calls": calls}


def schedules():
    s = torch.optim.lr_scheduler
    yield "StepLR(3, 0.5)", lambda o: s.StepLR(o, 3, 0.5)
    yield "MultiStepLR({2, 5, 5, 9}, 0.3)", lambda o: s.MultiStepLR(o, [2, 5, 5, 9], 0.3)
    yield "ExponentialLR(0.9)", lambda o: s.ExponentialLR(o, 0.9)
    yield "LinearLR(0.1, 0.8, 7)", lambda o: s.LinearLR(o, 0.1, 0.8, 7)
    yield "CosineAnnealingLR(6, 0.01)", lambda o: s.CosineAnnealingLR(o, 6, 0.01)
    yield "LambdaLR(1 / (1 + epoch))", lambda o: s.LambdaLR(o, lambda epoch: 1 / (1 + epoch))
    yield "OneCycleLR(0.5, 100)", lambda o: s.OneCycleLR(o, 0.5, 100)
    yield "OneCycleLR(0.5, 100, linear, three phases)", lambda o: s.OneCycleLR(
        o, 0.5, 100, anneal_strategy="linear", three_phase=True, pct_start=0.4
    )
    yield "SequentialLR(LinearLR, CosineAnnealingLR, ExponentialLR)", lambda o: s.SequentialLR(
        o,
        [s.LinearLR(o, 0.25, 1.0, 4), s.CosineAnnealingLR(o, 8, 0.02), s.ExponentialLR(o, 0.8)],
        [4, 12],
    )
    yield "ConstantLR(0.3, 4)", lambda o: s.ConstantLR(o, 0.3, 4)
    yield "PolynomialLR(8, 1.7)", lambda o: s.PolynomialLR(o, 8, 1.7)
    yield "CosineAnnealingWarmRestarts(4)", lambda o: s.CosineAnnealingWarmRestarts(o, 4)
    yield "CosineAnnealingWarmRestarts(3, 2, 0.01)", lambda o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)
    yield "SequentialLR(ConstantLR, PolynomialLR, CosineAnnealingWarmRestarts)", lambda o: s.SequentialLR(
        o,
        [s.ConstantLR(o, 0.5, 3), s.PolynomialLR(o, 9, 2.0), s.CosineAnnealingWarmRestarts(o, 3, 2)],
        [5, 9],
    )
    yield "StepLR and ExponentialLR together", lambda o: [s.StepLR(o, 3, 0.5), s.ExponentialLR(o, 0.9)]


def run_schedule(make):
    params = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.Adam([{"params": params[:1]}, {"params": params[1:], "lr": 0.2}], lr=0.1)
    made = make(optimizer)
    running = made if isinstance(made, list) else [made]
    rates, momenta = [], []
    for step in range(STEPS):
        if step < 20 or step % 10 == 9:
            rates.append([group["lr"] for group in optimizer.param_groups])
            momenta.append(optimizer.param_groups[0]["betas"][0])
        optimizer.step()
        for schedule in running:
            schedule.step()
    return {"lrs": rates, "beta1": momenta}


PLATEAUS = [
    {"patience": 3},
    {"mode": "max", "factor": 0.5, "patience": 1, "threshold": 0.2, "cooldown": 4},
    {"factor": 0.7, "patience": 0, "threshold": 0.05, "threshold_mode": "abs", "min_lr": [0.02, 0.05], "eps": 1e-3},
    {"mode": "max", "factor": 0.3, "patience": 2, "threshold": 0.01, "threshold_mode": "abs", "min_lr": 1e-4},
]


def run_plateau(options):
    """The metric of step n is 2 sin(n / 9) + 0.3 sin(2 n) + 3; the test computes the same. Keeps rates that changed."""
    params = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.2}], lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    changes, before = {}, None
    for step in range(STEPS):
        schedule.step(2 * math.sin(step / 9) + 0.3 * math.sin(2 * step) + 3)
        rates = [group["lr"] for group in optimizer.param_groups]
        if rates != before:
            changes[step] = before = rates
    return {"options": options, "lrs": changes}


def run_fractions():
    """Fractions of epochs, back and forth."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2, 0.01)
    rates = []
    for epoch in (0.25, 2.5, 3.0, 8.75, 9.5, 20.75, 26, None, 1.5, None, None):
        schedule.step(epoch)
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


# NAdam keeps the product of its momenta in the default dtype; Rushlight keeps it in double.
torch.set_default_dtype(torch.float64)
fixtures = {
    "optimizers": [
        run_optimizer(name, options, shapes, dtype)
        for name, cases in OPTIMIZERS.items()
        for options in cases
        for shapes in SHAPES.get(name, [VECTORS])
        for dtype in (torch.float64, torch.float32)
    ],
    "lbfgs": [run_lbfgs(options) for options in LBFGS],
    "plateaus": [run_plateau(options) for options in PLATEAUS],
    "restarts in fractions": run_fractions(),
    "schedules": {name: run_schedule(make) for name, make in schedules()},
}
text = json.dumps(fixtures)
pathlib.Path(__file__).with_name("fixtures.json").write_text(text.replace('{"optimizer"', '\n{"optimizer"').replace('"lrs"', '\n"lrs"') + "\n")
