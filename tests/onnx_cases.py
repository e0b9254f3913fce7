#!/usr/bin/env python3
"""onnx_cases.py RUSH_TESTS: has it run the cases that the package `onnx` comes with, where it is installed: those for single
operators, and nets that PyTorch has written. What it reads must give what ONNX says."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    from onnx import numpy_helper, version_converter
    from onnx.backend.test.case.node import collect_testcases
except ImportError:
    print("skipped: no onnx")
    sys.exit()

NUMBERS = {"bool", "float16", "float32", "float64"} | {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
DATA = pathlib.Path(onnx.__file__).parent / "backend/test/data"


def write(folder, model, inputs, outputs):
    """A case, if all its values are arrays of numbers that NumPy has."""
    arrays = {"input": inputs, "output": outputs}
    for array in [*inputs, *outputs]:
        if isinstance(array, (list, dict)) or array is None or numpy.asarray(array).dtype.name not in NUMBERS:
            return
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    for kind, both in arrays.items():
        for i, array in enumerate(both):
            numpy.save(folder / f"{kind}{i}.npy", array)


def read(path):
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def values(folder, kind):
    return [read(path) for path in sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))]


with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    for case in collect_testcases(None):
        if case.model is not None and case.data_sets:
            write(folder / case.name, case.model, *case.data_sets[0])
    for case in sorted(DATA.glob("pytorch-*/*")):
        try:
            model = version_converter.convert_version(onnx.load(case / "model.onnx"), 21)
        except Exception:  # it has no converter for all of them
            continue
        write(folder / f"{case.parent.name}-{case.name}", model, values(case / "test_data_set_0", "input"),
              values(case / "test_data_set_0", "output"))
    subprocess.run([sys.argv[1], "--test-case=ONNX's own cases *"], env={**os.environ, "RUSH_ONNX_CASES": temporary}, check=True)
