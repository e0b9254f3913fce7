#!/usr/bin/env python3
"""Writes recurrent.json for recurrent.cpp: recurrent networks, their cells and packed sequences, by PyTorch.

Run it with a Python that has PyTorch: python3 tests/nn/make_recurrent_fixtures.py
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch_fixtures import real, start, write

start(1)

ALL_KINDS = dict(num_layers=2, bidirectional=True, batch_first=True)


def with_state(module, x, h, c):
    return module(x, (h, c))


def packed(lengths, **options):
    """Packs the input, runs the module, pads the output again."""

    def call(module, x, *state):
        sequence = pack_padded_sequence(x, torch.tensor(lengths), **options)
        hx = None if not state else state[0] if len(state) == 1 else state
        output, last = module(sequence, hx)
        return pad_packed_sequence(output, batch_first=options.get("batch_first", False), padding_value=0.5)[0], last

    return call


UNSORTED = dict(enforce_sorted=False, batch_first=True)

write(
    __file__,
    [
        ("RNN", nn.RNN(3, 2), [real(4, 2, 3)]),
        ("RNN relu", nn.RNN(3, 4, nonlinearity="relu", bias=False), [real(4, 2, 3), real(1, 2, 4)]),
        ("RNN of all kinds", nn.RNN(3, 2, **ALL_KINDS), [real(2, 4, 3), real(4, 2, 2)]),
        ("GRU", nn.GRU(3, 2), [real(4, 2, 3)]),
        ("GRU of all kinds", nn.GRU(3, 2, **ALL_KINDS), [real(2, 4, 3), real(4, 2, 2)]),
        ("GRU unbatched", nn.GRU(3, 2, bias=False), [real(4, 3), real(1, 2)]),
        ("LSTM with a state", nn.LSTM(3, 2), [real(4, 2, 3), real(1, 2, 2), real(1, 2, 2)], with_state),
        (
            "LSTM projected",
            nn.LSTM(3, 4, proj_size=2, **ALL_KINDS),
            [real(2, 4, 3), real(4, 2, 2), real(4, 2, 4)],
            with_state,
        ),
        ("RNNCell", nn.RNNCell(3, 2, nonlinearity="relu"), [real(4, 3), real(4, 2)]),
        ("GRUCell", nn.GRUCell(3, 2), [real(4, 3), real(4, 2)]),
        ("GRUCell unbatched", nn.GRUCell(3, 2, bias=False), [real(3)]),
        ("LSTMCell with a state", nn.LSTMCell(3, 2), [real(4, 3), real(4, 2), real(4, 2)], with_state),
        ("RNN packed", nn.RNN(3, 2), [real(5, 3, 3)], packed([4, 2, 1])),
        (
            "GRU packed",
            nn.GRU(3, 2, num_layers=2, bidirectional=True),
            [real(3, 4, 3), real(4, 3, 2)],
            packed([2, 4, 3], **UNSORTED),
        ),
        (
            "LSTM packed",
            nn.LSTM(3, 3, num_layers=2, bidirectional=True, proj_size=2),
            [real(3, 4, 3), real(4, 3, 2), real(4, 3, 3)],
            packed([1, 2, 4], **UNSORTED),
        ),
    ],
    "recurrent.json",
)
