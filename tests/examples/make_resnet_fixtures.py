#!/usr/bin/env python3
"""Writes resnet.json for resnet.cpp: names and shapes of torchvision's residual networks, and what small ones compute.

Run it with a Python that has PyTorch: python3 tests/examples/make_resnet_fixtures.py
The networks are written out here, so that torchvision is not needed; where it is there, the names are compared with its.
"""

import json
import pathlib

import torch
from torch import nn


def conv(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        if bottleneck:
            self.conv1, self.bn1 = conv(inputs, width, 1), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
            self.conv3, self.bn3 = conv(width, outputs, 1), nn.BatchNorm2d(outputs)
        else:
            self.conv1, self.bn1 = conv(inputs, width, 3, stride), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = conv(width, outputs, 3), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y))
        if hasattr(self, "conv3"):
            y = self.bn3(self.conv3(y.relu()))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet(nn.Module):
    def __init__(self, depths, bottleneck, width=64, classes=1000):
        super().__init__()
        self.conv1, self.bn1 = conv(3, width, 7, 2), nn.BatchNorm2d(width)
        channels = width
        for stage, depth in enumerate(depths):
            blocks = []
            for i in range(depth):
                blocks.append(Block(channels, width << stage, 2 if stage and not i else 1, bottleneck))
                channels = (width << stage) * (4 if bottleneck else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def wave(shape, number):
    """Numbers that the test makes too."""
    count = torch.Size(shape).numel()
    return torch.sin(0.37 * torch.arange(1, count + 1, dtype=torch.float64) + number).reshape(shape)


def parameters(model):
    return [[name, list(p.shape)] for name, p in model.named_parameters()]


def dot_with_wave(t):
    return round((t * wave(t.shape, 0)).sum().item(), 10)


def small(depths, bottleneck):
    model = ResNet(depths, bottleneck, width=4, classes=5).double()
    with torch.no_grad():
        for number, (name, p) in enumerate(model.named_parameters()):
            scale = (2 / (p[0].numel())) ** 0.5 if p.dim() > 1 else 0.1
            p.copy_(scale * wave(p.shape, number) + (1 if p.dim() == 1 and name.endswith("weight") else 0))
    images = wave((2, 3, 64, 64), 1).requires_grad_()
    logits = model(images)
    nn.functional.cross_entropy(logits, torch.tensor([1, 3])).backward()
    model.eval()
    return {
        "state": list(model.state_dict()),
        "logits": [round(v, 10) for v in logits.flatten().tolist()],
        "evaluated": [round(v, 10) for v in model(images).flatten().tolist()],
        "image_gradient": dot_with_wave(images.grad),
        "gradients": [dot_with_wave(p.grad) for p in model.parameters()],
    }


FULL = {"resnet18": ([2, 2, 2, 2], False), "resnet34": ([3, 4, 6, 3], False), "resnet50": ([3, 4, 6, 3], True)}


def compare_with_torchvision():
    try:
        import torchvision
    except ImportError:
        return
    for name, sizes in FULL.items():
        assert parameters(ResNet(*sizes)) == parameters(getattr(torchvision.models, name)()), name


compare_with_torchvision()
fixtures = {name: parameters(ResNet(*sizes)) for name, sizes in FULL.items() if name != "resnet34"}
fixtures["basic blocks"] = small([1, 2, 1, 1], False)
fixtures["bottlenecks"] = small([2, 1, 1, 1], True)
lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fixtures.items()]
pathlib.Path(__file__).with_name("resnet.json").write_text("{" + ",\n".join(lines) + "}\n")
