#!/usr/bin/env python3
"""Writes npy.json: files as NumPy makes them, in hexadecimal, with what they hold. Run with NumPy 2 installed."""
import io
import json
import pathlib

import numpy as np

DTYPES = ["|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8", "<c8", "<c16", "<u2", "<u4", "<u8"]
SHAPES = [(), (3,), (2, 3), (2, 0, 4), (2, 1, 3)]


def counting(shape, dtype):
    """1, -2, 3, -4, ... in row-major order; True and False in turn."""
    count = int(np.prod(shape))
    values = np.array([(i + 1) * (-1) ** i for i in range(count)], dtype=np.float64).reshape(shape)
    if dtype == "|b1":
        return values > 0
    if "u" in dtype:
        return np.abs(values).astype(dtype)
    return values.astype(dtype)


def npy(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue().hex()


def npz(save, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue().hex()


arrays = []
for dtype in DTYPES:
    for shape in SHAPES:
        array = counting(shape, dtype)
        for order in "CF":
            if order == "F" and (len(shape) < 2 or dtype not in ("<f4", "|b1")):
                continue
            laid_out = np.asarray(array, order=order)
            arrays.append({"dtype": dtype, "shape": shape, "order": order, "hex": npy(laid_out)})
for version in ((2, 0), (3, 0)):
    arrays.append({"dtype": "<f4", "shape": (2, 3), "order": "C", "version": version[0],
                   "hex": npy(counting((2, 3), "<f4"), version)})

parts = {"weight": counting((2, 3), "<f4"), "bias": counting((3,), "<f8"), "steps": counting((), "<i8"),
         "zeros": np.zeros((40, 50), "<f4"), "column": np.asfortranarray(counting((2, 3), "<f4"))}
unsupported = {"big-endian": np.zeros(2, ">f4"), "extended precision": np.zeros(2, "<f16"), "text": np.array(["a"]),
               "structured": np.zeros(2, [("x", "<f4")])}
result = {"arrays": arrays,
          "npz": {"stored": npz(np.savez, **parts), "deflated": npz(np.savez_compressed, **parts)},
          "unsupported": {name: npy(array) for name, array in unsupported.items()}}
path = pathlib.Path(__file__).with_name("npy.json")
path.write_text(json.dumps(result, separators=(",", ":")).replace('},{', '},\n{') + "\n")
