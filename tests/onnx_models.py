#!/usr/bin/env python3
"""onnx_models.py RUSH_TESTS: has it write the models of tests/compile/onnx.cpp, checks them with ONNX's own checker, and
runs them with ONNX Runtime, where the packages `onnx` and `onnxruntime` are installed: its outputs must be Rushlight's."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError:
    print("skipped: no onnxruntime")
    sys.exit()

TOLERANCE = 1e-4


def arrays(path, size, kind):
    """The inputs or outputs at this size, in their order."""
    files = sorted(path.parent.glob(f"{path.stem}.{size}.{kind}_*.npy"))
    return {file.name.split(".")[-2]: numpy.load(file) for file in files}


def check_model(path):
    """The largest difference of an output from Rushlight's."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    sizes = {int(re.search(r"\.(\d+)\.output_", file.name).group(1)) for file in path.parent.glob(f"{path.stem}.*.npy")
             if ".output_" in file.name}
    worst = 0.0
    for size in sorted(sizes):
        expected = arrays(path, size, "output")
        found = session.run(list(expected), arrays(path, size, "input"))
        for (name, array), other in zip(expected.items(), found):
            if array.shape != other.shape or array.dtype != other.dtype:
                sys.exit(f"{path.name}, size {size}: {name} is {array.dtype}{array.shape}, ONNX Runtime's {other.dtype}{other.shape}")
            same = (array == other) | (numpy.isnan(array) & numpy.isnan(other))
            with numpy.errstate(invalid="ignore"):
                difference = numpy.where(same, 0, numpy.abs(array.astype(float) - other))
            worst = float(numpy.maximum(worst, difference.max(initial=0)))  # NaN where only one is
    if not sizes or not worst <= TOLERANCE:
        sys.exit(f"{path.name}: ONNX Runtime's outputs differ by {worst} at sizes {sizes}")
    return worst


with tempfile.TemporaryDirectory() as folder:
    case = "--test-case=a model that is written and read back *"
    subprocess.run([sys.argv[1], case], env={**os.environ, "RUSH_ONNX": folder}, check=True)
    models = sorted(pathlib.Path(folder).glob("*.onnx"))
    worst = {path.stem: check_model(path) for path in models}
    if len(worst) < 10:
        sys.exit(f"only {len(worst)} models were written")
    print(f"ONNX Runtime {onnxruntime.__version__} runs {len(worst)} models; the largest difference is "
          f"{max(worst.values()):.1e}, of {max(worst, key=worst.get)}")
