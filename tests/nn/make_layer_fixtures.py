#!/usr/bin/env python3
"""Writes layers.json for layers.cpp: modules that fixtures.json leaves out, by PyTorch.

Run it with a Python that has PyTorch: python3 tests/nn/make_layer_fixtures.py
"""

import torch
from torch import nn
from torch_fixtures import classes, positive, real, start, write

start(3)


def signs(*shape):
    return torch.randint(0, 2, shape) * 2 - 1


def bag(module, indices, *factors):
    return module(indices, torch.tensor([0, 2, 2]), *factors)


def distance(a, b):
    return (a - b).abs().sum(-1)


write(
    __file__,
    [
        ("Hardshrink", nn.Hardshrink(0.6), [real(6)]),
        ("Softshrink", nn.Softshrink(0.3), [real(6)]),
        ("Threshold", nn.Threshold(0.1, -2), [real(6)]),
        ("PReLU", nn.PReLU(), [real(2, 3)]),
        ("PReLU by channel", nn.PReLU(3, init=0.1), [real(2, 3, 2)]),
        ("RReLU evaluated", nn.RReLU(0.1, 0.4).eval(), [real(6)]),
        ("Softmax2d", nn.Softmax2d(), [real(1, 3, 2, 2)]),
        ("InstanceNorm1d", nn.InstanceNorm1d(2, affine=True, eps=0.1), [real(2, 2, 4)]),
        ("InstanceNorm2d tracked", nn.InstanceNorm2d(2, track_running_stats=True), [real(2, 2, 2, 3)]),
        ("InstanceNorm2d evaluated", nn.InstanceNorm2d(2, track_running_stats=True).eval(), [real(2, 2, 2, 3)]),
        ("InstanceNorm3d unbatched", nn.InstanceNorm3d(2), [real(2, 2, 1, 3)]),
        ("LocalResponseNorm", nn.LocalResponseNorm(2, alpha=0.3, beta=0.5, k=2), [real(2, 4, 3)]),
        ("LocalResponseNorm of images", nn.LocalResponseNorm(3, alpha=0.5), [real(1, 4, 2, 2)]),
        ("EmbeddingBag", nn.EmbeddingBag(5, 3), [classes(5, 2, 4)]),
        ("EmbeddingBag sum", nn.EmbeddingBag(5, 3, mode="sum", padding_idx=-3), [classes(5, 4), real(4)], bag),
        ("EmbeddingBag max", nn.EmbeddingBag(5, 3, mode="max"), [classes(5, 4)], bag),
        ("CosineSimilarity", nn.CosineSimilarity(dim=0), [real(3, 2), real(3, 2)]),
        ("PairwiseDistance", nn.PairwiseDistance(p=3, keepdim=True), [real(3, 2), real(3, 2)]),
        ("Fold", nn.Fold((3, 4), 2, padding=1, stride=(1, 2)), [real(1, 4, 12)]),
        ("Unfold", nn.Unfold((2, 3), dilation=(2, 1), padding=1), [real(1, 2, 3, 4)]),
        ("PixelShuffle", nn.PixelShuffle(2), [real(1, 4, 2, 1)]),
        ("PixelUnshuffle", nn.PixelUnshuffle(2), [real(1, 2, 4)]),
        ("Upsample nearest", nn.Upsample(scale_factor=1.6), [real(1, 2, 4)]),
        ("Upsample linear", nn.Upsample(size=5, mode="linear"), [real(1, 2, 3)]),
        ("Upsample bilinear", nn.Upsample(size=(3, 5), mode="bilinear", align_corners=True), [real(1, 1, 2, 3)]),
        ("Upsample bicubic", nn.Upsample(scale_factor=(2, 1.5), mode="bicubic"), [real(1, 1, 3, 4)]),
        ("Upsample trilinear", nn.Upsample(scale_factor=2, mode="trilinear"), [real(1, 1, 2, 1, 2)]),
        ("ReflectionPad1d", nn.ReflectionPad1d((1, 2)), [real(1, 2, 4)]),
        ("ReflectionPad2d", nn.ReflectionPad2d((1, 0, 2, 1)), [real(1, 3, 2)]),
        ("ReflectionPad3d", nn.ReflectionPad3d(1), [real(1, 1, 2, 2, 2)]),
        ("ReplicationPad1d", nn.ReplicationPad1d(2), [real(1, 2, 3)]),
        ("ReplicationPad2d", nn.ReplicationPad2d((1, 0, 2, 1)), [real(1, 1, 2, 2)]),
        ("ReplicationPad3d", nn.ReplicationPad3d((1, 0, 0, 1, 1, 0)), [real(1, 1, 2, 2)]),
        ("CircularPad2d", nn.CircularPad2d((1, 0, 2, 1)), [real(1, 1, 2, 2)]),
        ("ZeroPad2d", nn.ZeroPad2d((1, -1, 0, 1)), [real(1, 2, 3)]),
        ("ConstantPad1d", nn.ConstantPad1d((1, 2), 0.5), [real(2, 2)]),
        ("ConstantPad3d", nn.ConstantPad3d(1, -1.5), [real(1, 1, 2, 1)]),
        (
            "ConvTranspose1d",
            nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
            [real(2, 4, 3)],
        ),
        ("ConvTranspose2d", nn.ConvTranspose2d(2, 1, (2, 3), dilation=(2, 1), bias=False), [real(2, 3, 2)]),
        (
            "ConvTranspose2d to a size",
            nn.ConvTranspose2d(1, 2, 2, stride=3),
            [real(1, 1, 2, 2)],
            lambda module, x: module(x, output_size=(7, 5)),
        ),
        ("ConvTranspose3d", nn.ConvTranspose3d(1, 2, 2), [real(1, 1, 2, 1, 2)]),
        ("AdaptiveMaxPool1d", nn.AdaptiveMaxPool1d(3), [real(1, 2, 5)]),
        ("AdaptiveMaxPool2d", nn.AdaptiveMaxPool2d((2, None)), [real(1, 5, 3)]),
        ("AdaptiveMaxPool3d", nn.AdaptiveMaxPool3d(1), [real(1, 2, 2, 2, 2)]),
        ("LPPool1d", nn.LPPool1d(3, 2), [positive(1, 2, 5)]),
        ("LPPool2d", nn.LPPool2d(2, (2, 3), stride=(1, 2), ceil_mode=True), [real(1, 1, 3, 4)]),
        ("LPPool3d", nn.LPPool3d(1.5, 2), [positive(1, 1, 2, 2, 4)]),
        ("SoftMarginLoss", nn.SoftMarginLoss(), [real(2, 3), signs(2, 3)]),
        ("PoissonNLLLoss", nn.PoissonNLLLoss(full=True), [real(2, 3), positive(2, 3) * 4]),
        ("PoissonNLLLoss of rates", nn.PoissonNLLLoss(log_input=False, reduction="sum"), [positive(4), positive(4)]),
        ("HingeEmbeddingLoss", nn.HingeEmbeddingLoss(margin=0.5), [real(2, 3), signs(2, 3)]),
        ("MultiMarginLoss", nn.MultiMarginLoss(p=2, margin=0.7, weight=positive(4)), [real(3, 4), classes(4, 3)]),
        ("MultiLabelMarginLoss", nn.MultiLabelMarginLoss(), [real(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 0]])]),
        ("MultiLabelSoftMarginLoss", nn.MultiLabelSoftMarginLoss(weight=positive(3)), [real(2, 3), positive(2, 3)]),
        ("MarginRankingLoss", nn.MarginRankingLoss(margin=0.2), [real(4), real(4), signs(4)]),
        ("CosineEmbeddingLoss", nn.CosineEmbeddingLoss(margin=-0.3), [real(4, 3), real(4, 3), signs(4)]),
        ("TripletMarginLoss", nn.TripletMarginLoss(p=3, swap=True), [real(4, 3), real(4, 3), real(4, 3)]),
        (
            "TripletMarginWithDistanceLoss",
            nn.TripletMarginWithDistanceLoss(distance_function=distance, swap=True, margin=2, reduction="sum"),
            [real(4, 3), real(4, 3), real(4, 3)],
        ),
    ],
    "layers.json",
)
