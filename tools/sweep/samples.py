"""Calls each operator on the samples that PyTorch's own tests have of it."""
import itertools
import re

import torch
from torch.testing._internal.common_methods_invocations import op_db

from calls import DTYPES


def run(settings):
    """The settings' `part` of `parts`: the operators are divided among processes."""
    pattern = re.compile(settings["ops"])
    chosen = [op for op in op_db if pattern.search(op.name)]
    for op in chosen[settings["part"]::settings["parts"]]:
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            if dtype in DTYPES and (not settings["dtypes"] or DTYPES[dtype] in settings["dtypes"]):
                call(op, dtype, settings["seed"], settings["samples"])
        call_wrongly(op)


def call(op, dtype, seed, most):
    torch.manual_seed(seed)
    try:
        for sample in itertools.islice(op.reference_inputs("cpu", dtype), most):
            for variant in (op.get_op(), op.get_inplace()):
                if variant is not None:
                    call_once(variant, sample)
    except Exception:  # of the generator of samples, which not every dtype has
        pass


def call_wrongly(op):
    """What PyTorch must refuse: the recorder takes it as such."""
    try:
        for wrong in op.error_inputs("cpu"):
            call_once(op.get_op(), wrong.sample_input)
    except Exception:  # of the generator, likewise
        pass


def call_once(function, sample):
    try:
        inputs = sample.input.clone() if isinstance(sample.input, torch.Tensor) else sample.input
        function(inputs, *sample.args, **sample.kwargs)
    except Exception:  # the recorder has seen what PyTorch refuses
        pass
