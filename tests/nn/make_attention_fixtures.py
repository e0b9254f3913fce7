#!/usr/bin/env python3
"""Writes attention.json for attention.cpp: multi-head attention and transformers, by PyTorch.

Run it with a Python that has PyTorch: python3 tests/nn/make_attention_fixtures.py
"""

import torch
from torch import nn
from torch_fixtures import real, start, write

start(2)

CAUSAL = torch.ones(3, 3).triu(1).bool()
PADDING = torch.tensor([[False, False, True], [False, False, False]])  # (N, S) = (2, 3)


def attention(**options):
    return lambda module, *inputs: module(*inputs, **options)


def self_attention(**options):
    return lambda module, x: module(x, x, x, **options)


def added(module, q, k, v, mask):
    return module(q, k, v, attn_mask=mask)


def encoder(**options):
    return lambda module, x: module(x, **options)


SMALL = dict(dim_feedforward=5, dropout=0.0)


def encoder_layer(**options):
    return nn.TransformerEncoderLayer(4, 2, **SMALL, **options)


def decoder_layer(**options):
    return nn.TransformerDecoderLayer(4, 2, **SMALL, **options)


def decode(module, tgt, memory):
    return module(tgt, memory, tgt_mask=CAUSAL, memory_key_padding_mask=PADDING)


def transform(module, src, tgt):
    return module(src, tgt, tgt_mask=CAUSAL, src_key_padding_mask=PADDING, memory_key_padding_mask=PADDING)


write(
    __file__,
    [
        ("MultiheadAttention", nn.MultiheadAttention(4, 2), [real(2, 2, 4), real(3, 2, 4), real(3, 2, 4)]),
        ("MultiheadAttention of itself", nn.MultiheadAttention(4, 2), [real(3, 2, 4)], self_attention()),
        (
            "MultiheadAttention of other sizes",
            nn.MultiheadAttention(4, 2, bias=False, kdim=3, vdim=2, batch_first=True),
            [real(2, 2, 4), real(2, 3, 3), real(2, 3, 2)],
            attention(average_attn_weights=False),
        ),
        (
            "MultiheadAttention extended",
            nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True),
            [real(3, 2, 4)],
            self_attention(attn_mask=CAUSAL, key_padding_mask=PADDING),
        ),
        (
            "MultiheadAttention without weights",
            nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True),
            [real(3, 2, 4)],
            self_attention(attn_mask=CAUSAL, key_padding_mask=PADDING, need_weights=False),
        ),
        (
            "MultiheadAttention with added scores",
            nn.MultiheadAttention(4, 2),
            [real(2, 2, 4), real(3, 2, 4), real(3, 2, 4), real(4, 2, 3)],
            added,
        ),
        ("MultiheadAttention unbatched", nn.MultiheadAttention(4, 2), [real(2, 4), real(3, 4), real(3, 4)]),
        ("TransformerEncoderLayer", encoder_layer(), [real(3, 2, 4)]),
        (
            "TransformerEncoderLayer masked",
            encoder_layer(norm_first=True, activation="gelu", batch_first=True, layer_norm_eps=0.1),
            [real(2, 3, 4)],
            encoder(src_mask=CAUSAL, src_key_padding_mask=PADDING),
        ),
        ("TransformerDecoderLayer", decoder_layer(), [real(2, 2, 4), real(3, 2, 4)]),
        ("TransformerDecoderLayer masked", decoder_layer(norm_first=True), [real(3, 2, 4), real(3, 2, 4)], decode),
        ("TransformerEncoder", nn.TransformerEncoder(encoder_layer(), 2, norm=nn.LayerNorm(4)), [real(3, 2, 4)]),
        ("TransformerDecoder", nn.TransformerDecoder(decoder_layer(), 2), [real(2, 2, 4), real(3, 2, 4)]),
        (
            "Transformer",
            nn.Transformer(4, 2, num_encoder_layers=1, num_decoder_layers=2, **SMALL),
            [real(3, 2, 4), real(3, 2, 4)],
            transform,
        ),
        (
            "Transformer without biases",
            nn.Transformer(4, 2, num_encoder_layers=1, num_decoder_layers=1, bias=False, **SMALL),
            [real(3, 2, 4), real(3, 2, 4)],
            transform,
        ),
    ],
    "attention.json",
)
