#!/usr/bin/env python3
"""Writes rare_layers.json for rare_layers.cpp: the layers that the other fixtures leave out, by PyTorch.

Run it with a Python that has PyTorch: python3 tests/nn/make_rare_layer_fixtures.py
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch_fixtures import classes, positive, real, start, write

start(5)


def ints(*values):
    return torch.tensor(values)


def log_probs(*shape):
    return real(*shape).log_softmax(-1).mul(1000).round().div(1000)


def pooled(function, x, *args, **kwargs):
    return [t.detach() for t in function(x, *args, return_indices=True, **kwargs)]


def samples(*shape):
    return torch.rand(shape).mul(1000).floor().div(1000)



def sample(**options):
    return lambda module, x, grid: F.grid_sample(x, grid, **options)


def grid(size, align_corners):
    return lambda module, theta: F.affine_grid(theta, size, align_corners)


def resize(**options):
    return lambda module, x: F.interpolate(x, antialias=True, **options)


def full(module, x):
    return module.log_prob(x), module.predict(x).double()


class CrossMapLRN2d(nn.Module):
    """The values of nn.CrossMapLRN2d with their own gradient: that of PyTorch's backward is another one."""

    def __init__(self, size, alpha, beta, k):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x):
        half = (self.size + 1) // 2
        sums = []
        for c in range(x.size(1)):
            sums.append(x[:, max(c - half + 1, 0) : c + half].square().sum(1))
            if c >= half:
                sums[-1] = sums[-1] + x[:, 0].square()
        y = x * (torch.stack(sums, 1) * self.alpha / self.size + self.k) ** -self.beta
        theirs = nn.CrossMapLRN2d(self.size, self.alpha, self.beta, self.k)(x.detach())
        assert torch.allclose(y, theirs, rtol=1e-12, atol=0)
        return y


UNEVEN = ints(5, 0, 4), ints(2, 0, 3)
INDEXED_1D = pooled(F.max_pool1d, real(1, 2, 7), 3, stride=2)
INDEXED_2D = pooled(F.max_pool2d, real(2, 1, 5, 4), 2)
INDEXED_3D = pooled(F.max_pool3d, real(1, 2, 4, 5, 4), (2, 3, 2), stride=(2, 1, 2), padding=(0, 1, 0))
RATIO_2D = {"output_ratio": (0.5, 0.7), "_random_samples": samples(1, 2, 2)}
SIZE_2D = {"output_size": (2, 3), "_random_samples": samples(2, 2, 2)}

write(
    __file__,
    [
        ("CTCLoss", nn.CTCLoss(), [log_probs(6, 2, 4), ints([1, 2, 2], [3, 1, 0]), ints(6, 5), ints(3, 2)]),
        ("CTCLoss of one", nn.CTCLoss(blank=2), [log_probs(4, 3), ints(0, 1), ints(4), ints(2)]),
        (
            "CTCLoss of sequences in a row",
            nn.CTCLoss(blank=4, reduction="none"),
            [log_probs(5, 3, 5), ints(1, 1, 0, 2, 3), *UNEVEN],
        ),
        (
            "CTCLoss without infinity",
            nn.CTCLoss(reduction="sum", zero_infinity=True),
            [log_probs(3, 2, 3), ints([1, 1, 1], [2, 1, 0]), ints(3, 2), ints(3, 2)],
        ),
        ("GaussianNLLLoss", nn.GaussianNLLLoss(), [real(3, 2), real(3, 2), positive(3, 2)]),
        (
            "GaussianNLLLoss by row",
            nn.GaussianNLLLoss(full=True, reduction="none"),
            [real(3, 2), real(3, 2), positive(3)],
        ),
        (
            "GaussianNLLLoss of least variance",
            nn.GaussianNLLLoss(eps=0.5, reduction="sum"),
            [real(3, 2), real(3, 2), positive(3, 1)],
        ),
        ("MaxPool1d with indices", nn.MaxPool1d(3, 2, return_indices=True), [real(2, 1, 7)]),
        ("MaxPool2d with indices", nn.MaxPool2d(2, padding=1, return_indices=True), [real(1, 2, 3, 4)]),
        ("MaxPool3d with indices", nn.MaxPool3d(2, 1, return_indices=True), [real(1, 2, 3, 3)]),
        ("AdaptiveMaxPool2d with indices", nn.AdaptiveMaxPool2d((2, None), return_indices=True), [real(2, 5, 3)]),
        ("MaxUnpool1d", nn.MaxUnpool1d(3, 2), INDEXED_1D),
        ("MaxUnpool2d", nn.MaxUnpool2d(2), INDEXED_2D),
        (
            "MaxUnpool2d to a size",
            nn.MaxUnpool2d(2),
            [t.clone() for t in INDEXED_2D],
            lambda module, x, indices: module(x, indices, output_size=(2, 1, 5, 4)),
        ),
        ("MaxUnpool3d", nn.MaxUnpool3d((2, 3, 2), (2, 1, 2), (0, 1, 0)), INDEXED_3D),
        ("FractionalMaxPool2d", nn.FractionalMaxPool2d(2, **SIZE_2D), [real(2, 2, 5, 6)]),
        (
            "FractionalMaxPool2d with indices",
            nn.FractionalMaxPool2d((3, 2), return_indices=True, **RATIO_2D),
            [real(2, 7, 6)],
        ),
        (
            "FractionalMaxPool3d",
            nn.FractionalMaxPool3d((1, 2, 3), output_size=(3, 1, 2), _random_samples=samples(1, 2, 3)),
            [real(1, 2, 4, 3, 5)],
        ),
        ("CrossMapLRN2d", CrossMapLRN2d(3, 0.5, 0.75, 1.0), [real(2, 5, 1, 2)]),
        ("CrossMapLRN2d of even size", CrossMapLRN2d(4, 0.8, 0.5, 2.0), [real(1, 6, 2, 1)]),
        ("CrossMapLRN2d of few channels", CrossMapLRN2d(9, 0.8, 0.5, 2.0), [real(1, 3, 2, 1)]),
        (
            "AdaptiveLogSoftmaxWithLoss",
            nn.AdaptiveLogSoftmaxWithLoss(6, 9, [3, 5], div_value=2.0),
            [real(5, 6), ints(0, 8, 4, 2, 6)],
        ),
        (
            "AdaptiveLogSoftmaxWithLoss of one",
            nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2], head_bias=True),
            [real(4), ints(3)[0]],
        ),
        (
            "AdaptiveLogSoftmaxWithLoss of all",
            nn.AdaptiveLogSoftmaxWithLoss(6, 9, [3, 5], div_value=2.0),
            [real(5, 6)],
            full,
        ),
        ("ChannelShuffle", nn.ChannelShuffle(3), [real(2, 6, 1, 2)]),
        ("UpsamplingNearest2d", nn.UpsamplingNearest2d(scale_factor=2), [real(1, 2, 2, 1)]),
        ("UpsamplingBilinear2d", nn.UpsamplingBilinear2d(size=(3, 5)), [real(1, 1, 2, 3)]),
        ("antialiased bilinear", nn.Identity(), [real(1, 2, 7, 6)], resize(size=(3, 8), mode="bilinear")),
        (
            "antialiased bilinear by factor",
            nn.Identity(),
            [real(1, 1, 6, 9)],
            resize(scale_factor=(0.6, 0.3), mode="bilinear"),
        ),
        ("antialiased bicubic", nn.Identity(), [real(1, 2, 9, 5)], resize(size=(4, 7), mode="bicubic")),
        (
            "antialiased bicubic aligned",
            nn.Identity(),
            [real(1, 1, 8, 5)],
            resize(size=(3, 2), mode="bicubic", align_corners=True),
        ),
        ("grid_sample", nn.Identity(), [real(1, 2, 3, 4), real(1, 2, 3, 2)], sample(align_corners=False)),
        (
            "grid_sample of the border",
            nn.Identity(),
            [real(1, 2, 3, 4), real(1, 2, 3, 2)],
            sample(mode="bicubic", padding_mode="border", align_corners=True),
        ),
        (
            "grid_sample of volumes",
            nn.Identity(),
            [real(1, 2, 3, 2, 2), real(1, 1, 2, 2, 3)],
            sample(padding_mode="reflection", align_corners=False),
        ),
        (
            "grid_sample of the nearest",
            nn.Identity(),
            [real(1, 2, 3, 4), real(1, 2, 3, 2)],
            sample(mode="nearest", align_corners=False),
        ),
        ("pdist", nn.Identity(), [real(4, 3)], lambda module, x: F.pdist(x, p=3)),
        ("affine_grid", nn.Identity(), [real(2, 2, 3)], grid((2, 1, 2, 3), False)),
        ("affine_grid of volumes", nn.Identity(), [real(1, 3, 4)], grid((1, 1, 2, 1, 3), True)),
    ],
    "rare_layers.json",
)
