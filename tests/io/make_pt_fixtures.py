#!/usr/bin/env python3
"""Writes pt.json: files of torch.save's, in hexadecimal digits, and the tensors that are in them, for pt.cpp to read.

Run it with a Python that has PyTorch: python3 tests/io/make_pt_fixtures.py
With the name of a file, it loads that file as a dict of tensors and prints it: what save_pt wrote is what PyTorch reads.
"""

import collections
import io
import json
import pathlib
import sys

import torch

if len(sys.argv) > 1:
    for name, tensor in torch.load(sys.argv[1], weights_only=True).items():
        print(name, tensor.dtype, tuple(tensor.shape), tensor.tolist())
    sys.exit()

torch.manual_seed(0)
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16, torch.int32,
    torch.int64, torch.bool,
]
base = torch.arange(12, dtype=torch.float32).view(3, 4)
net = torch.nn.Sequential(collections.OrderedDict(fc=torch.nn.Linear(2, 3), norm=torch.nn.BatchNorm1d(3)))
optimizer = torch.optim.Adam(net.parameters(), 0.1)
net(torch.randn(4, 2)).sum().backward()
optimizer.step()
pair = torch.tensor([[1 + 2j, 3 - 4j]])

FILES = {
    "a tensor": base,
    "dtypes": {str(d).removeprefix("torch."): torch.tensor([0, 1, 1]).to(d) for d in DTYPES},
    "views": {"whole": base, "transposed": base.t(), "column": base[:, 1], "scalar": base[2, 3], "none": base[:0]},
    "a state dict": net.state_dict(),
    "a checkpoint": {"epoch": 5, "best": 0.25, "note": None, "model": net.state_dict(), "optimizer": optimizer.state_dict()},
    "a list": [base[0], (base[1], "text", torch.nn.Parameter(torch.ones(2)))],
    "stored dtypes": {
        str(d).removeprefix("torch."): torch.tensor([[0, 1, 100]]).to(d)
        for d in [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]
    },
    "complex": [torch.tensor([1 + 2j]), torch.tensor([1 - 2j], dtype=torch.complex128)],
    "lazily conjugated and negated views": {"conj": pair.conj(), "adjoint": pair.mH, "negated": pair.clone().conj().imag, "itself": pair},
    "an integer of more than 64 bits": {"seed": 2**63 + 5, "w": base},
    "refused: a module": net,
    "refused: the format before PyTorch 1.6": {"w": base},
}


def tensors(value, name=""):
    """The tensors in it by name, as load_pt has them."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        yield name, value if not value.is_complex() else torch.view_as_real(value)
    elif isinstance(value, (dict, list, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors(item, f"{name}.{key}" if name else str(key))


cases = []
for title, value in FILES.items():
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization="before PyTorch 1.6" not in title)
    case = {"title": title, "file": file.getvalue().hex()}
    if not title.startswith("refused"):
        case["tensors"] = [
            {"name": n, "shape": list(t.shape), "values": t.to(torch.float64).flatten().tolist()} for n, t in tensors(value)
        ]
    cases.append(json.dumps(case))
pathlib.Path(__file__).with_name("pt.json").write_text("[\n" + ",\n".join(cases) + "\n]\n")
