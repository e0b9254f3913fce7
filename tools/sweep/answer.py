"""PyTorch's answer to a call: the outputs, and the gradients where autograd gives them."""
import contextlib
import re

import torch
from torch.utils import _pytree as pytree

from calls import Unfit, rebuilt, require_plain, values_of

CANNOT = re.compile(
    "not implemented|not (currently |yet )?support|unsupported|only support|Could not run|internal assert", re.I)
DIFFERENTIATED = (torch.float64, torch.complex128)
SHORT = {torch.bfloat16: (1.6e-2, 1e-2), torch.float16: (2e-3, 2e-3)}  # the runner's relative and absolute tolerance
NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


class Refused(Unfit):
    """PyTorch calls the arguments wrong, for this reason."""

    def __init__(self, why):
        super().__init__("PyTorch refuses it")
        self.why = (why.strip().splitlines() or ["no message"])[0]


@contextlib.contextmanager
def as_at_the_start(keys=(torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set())):
    """Runs its body as a program's first lines: with gradients, and without modes, guards and other default dtypes."""
    default, is_deterministic = torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(False)
    try:
        with torch._C._ForceDispatchKeyGuard(*keys), torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
            with torch.inference_mode(False), torch.enable_grad():
                yield
    finally:
        torch.set_default_dtype(default)
        torch.use_deterministic_algorithms(is_deterministic)


class Answer:
    """What PyTorch makes of a call, on tensors that are laid out as the runner lays them out. Throws Unfit when nothing
    can be compared with that."""

    def __init__(self, func, args, kwargs, seed):
        self.func, self.args, self.kwargs = func, args, kwargs
        self.inputs = []  # as the runner lays them out, of the first call
        self.outputs = self.call(requires_grad=False, inputs=self.inputs)[0]
        for output in self.outputs:
            if output is not None:
                require_plain(output)
        again = self.call(requires_grad=False)[0]
        for one, other in zip(self.outputs, again):
            if one is not None and not torch.equal(comparable(one), comparable(other)):
                raise Unfit("results that differ from call to call")
        self.grad_outputs, self.grads = {}, {}
        if not any(is_written_to(argument) for argument in func._schema.arguments):
            self.differentiate(seed)

    def is_imprecise(self):
        """Whether an output of 16 bits is beyond the runner's tolerance of what the call gives in float64: then
        another answer may be the better one."""
        if not any(output is not None and output.dtype in SHORT for output in self.outputs):
            return False
        try:
            exact = self.call(requires_grad=False, in_float64=True)[0]
        except Unfit:
            return False
        return any(output is not None and output.dtype in SHORT and output.shape == wide.shape
                   and not torch.allclose(output.to(wide.dtype), wide, *SHORT[output.dtype], equal_nan=True)
                   for output, wide in zip(self.outputs, exact))

    def shared_input(self, output):
        """The place of the tensor whose memory the output shares, or None."""
        memory = output.untyped_storage()._cdata
        places = (place for place, tensor in enumerate(self.inputs) if tensor.untyped_storage()._cdata == memory)
        return next(places, None)

    def call(self, requires_grad, in_float64=False, inputs=None):
        """The outputs, and the tensors that are differentiated by their places among all."""
        leaves, inputs = {}, [] if inputs is None else inputs

        def own(value):
            if not isinstance(value, torch.Tensor):
                return value
            place, value = len(inputs), rebuilt(value)
            inputs.append(value)
            if in_float64 and value.dtype in SHORT:
                return value.double()
            if requires_grad and value.dtype in DIFFERENTIATED:
                leaves[place] = value.requires_grad_()
            return value

        args, kwargs = pytree.tree_map(own, self.args), pytree.tree_map(own, self.kwargs)
        try:
            result = self.func(*args, **kwargs)
        except Exception as error:
            if isinstance(error, NotImplementedError) or CANNOT.search(str(error)):
                raise Unfit("PyTorch cannot do it") from error
            raise Refused(str(error)) from error
        return outputs_of(result if self.func._schema.returns else self.written(args, kwargs)), leaves

    def written(self, args, kwargs):
        """The arguments that an operator without results writes."""
        given = {argument.name: value for argument, value in zip(self.func._schema.arguments, args)} | kwargs
        return [given[argument.name] for argument in self.func._schema.arguments if is_written_to(argument)]

    def differentiate(self, seed):
        try:
            outputs, leaves = self.call(requires_grad=True)
        except Unfit:
            return
        generator = torch.Generator().manual_seed(seed)
        given = {i: torch.randn(output.shape, dtype=output.dtype, generator=generator)
                 for i, output in enumerate(outputs)
                 if output is not None and output.requires_grad and output.dtype in DIFFERENTIATED}
        if not given or not leaves:
            return
        roots = [outputs[i] for i in given]
        try:
            grads = torch.autograd.grad(roots, list(leaves.values()), list(given.values()), allow_unused=True)
        except RuntimeError:
            return
        if all(grad is None or grad.layout == torch.strided for grad in grads):
            self.grad_outputs, self.grads = given, dict(zip(leaves, grads))


def is_written_to(argument):
    return argument.alias_info is not None and argument.alias_info.is_write


def outputs_of(result):
    """The results one by one; numbers are tensors without dimensions."""
    flat = []
    for value in result if isinstance(result, (tuple, list)) else [result]:
        for each in value if isinstance(value, (tuple, list)) else [value]:
            if type(each) in NUMBERS:
                each = torch.tensor(each, dtype=NUMBERS[type(each)])
            if each is not None and not isinstance(each, torch.Tensor):
                raise Unfit(f"a result of type {type(each).__name__}")
            flat.append(each)
    return flat


def comparable(tensor):
    """The values, such that NaN equals NaN."""
    flat = values_of(tensor).reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    return flat.double().nan_to_num(nan=0.125) if flat.is_floating_point() else flat.view(torch.uint8)
