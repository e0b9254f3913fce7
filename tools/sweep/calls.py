"""What of a call of an operator can be recorded: its arguments in the form of a case of conformance, and its hash."""
import ctypes
import hashlib
import json
import math

import torch

DTYPES = {getattr(torch, name): name for name in (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 bool bfloat16 float8_e5m2 float8_e4m3fn "
    "uint16 uint32 uint64").split()}
PLAIN = (torch.Tensor, torch.nn.Parameter)
MOST_ELEMENTS = 1 << 14  # of a tensor
MOST_DIMENSIONS = 64
MOST_WORDS = 24  # elements of a tensor that a report shows


class Unfit(Exception):
    """The call cannot become a case; the text is the reason, by which such calls are counted."""


def values_of(tensor):
    """A contiguous copy without gradient, conjugate bit and negative bit."""
    return tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def bytes_of(tensor):
    """The bytes of a contiguous tensor."""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()) if tensor.numel() else b""


def extent(tensor):
    """How many elements lie between the first and the last one in memory, both included."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))


def require_plain(tensor):
    """Throws Unfit unless this is a dense tensor on the CPU that is small and of a dtype that both sides have."""
    if type(tensor) not in PLAIN or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        raise Unfit("a subclass of Tensor")
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized or tensor.is_nested:
        raise Unfit("a tensor that is not dense, or not on the CPU")
    if tensor.dtype not in DTYPES:
        raise Unfit(f"the dtype {tensor.dtype}")
    if tensor._is_zerotensor() or tensor.has_names():
        raise Unfit("a tensor with names, or of zeros that are not stored")
    if tensor.dim() > MOST_DIMENSIONS:
        raise Unfit("a tensor of many dimensions")
    if tensor.numel() > MOST_ELEMENTS or extent(tensor) > 4 * MOST_ELEMENTS:
        raise Unfit("a large tensor")


def rebuilt(tensor):
    """The tensor as the runner lays it out: its strides, from the start of a storage of its own."""
    plain = tensor.detach()
    if plain.is_contiguous() or plain.is_conj() or plain.is_neg():
        return values_of(tensor)
    memory = torch.zeros(extent(plain), dtype=plain.dtype)
    first = [slice(0, 1) if stride == 0 else slice(None) for stride in plain.stride()]
    memory.as_strided(plain.shape, plain.stride())[tuple(first)].copy_(plain[tuple(first)])
    return memory.as_strided(plain.shape, plain.stride())


def number(value):
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise Unfit("an integer beyond int64")
        return value
    if isinstance(value, complex):
        if not (math.isfinite(value.real) and math.isfinite(value.imag)):
            raise Unfit("a complex number that is not finite")
        return {"complex": [value.real, value.imag]}
    if math.isfinite(value):
        return value
    return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}


def name_of(constant):
    return str(constant).removeprefix("torch.")


class Arguments:
    """The arguments of a call in a case's form. `tensors` are those in it, in order; the case names them by number."""

    def __init__(self, schema, args, kwargs):
        self.tensors, self.numbers = [], 0
        self.args = [self.form(value, argument.type) for value, argument in zip(args, schema.arguments)]
        types = {argument.name: argument.type for argument in schema.arguments}
        self.kwargs = {name: self.form(value, types[name]) for name, value in kwargs.items()}
        if self.numbers and not self.tensors:
            raise Unfit("numbers in place of tensors")

    def form(self, value, declared):
        declared = str(declared)
        if value is None:
            return None
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, (bool, int, float, complex)):
            self.numbers += declared == "Tensor"
            is_float = "float" in declared and not isinstance(value, complex)
            return number(float(value) if is_float else value)
        if isinstance(value, str):
            return value
        if isinstance(value, torch.dtype):
            if value not in DTYPES:
                raise Unfit(f"the dtype {value}")
            return {"dtype": DTYPES[value]}
        if isinstance(value, torch.layout):
            if value != torch.strided:
                raise Unfit("a layout that is not strided")
            return {"layout": "strided"}
        if isinstance(value, torch.memory_format):
            return {"memory_format": name_of(value)}
        if isinstance(value, torch.device):
            if value.type != "cpu":
                raise Unfit("another device")
            return {"device": "test"}
        if isinstance(value, (list, tuple)):
            return self.list(value, declared)
        raise Unfit(f"an argument of type {type(value).__name__}")

    def list(self, values, declared):
        forms = [self.form(value, declared) for value in values]
        if any(isinstance(form, dict) and "tensor" not in form for form in forms):
            raise Unfit("a list of numbers that are not finite, or complex")
        return forms

    def tensor(self, tensor):
        require_plain(tensor)
        spec = {"tensor": len(self.tensors), "dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape)}
        if not (tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg()):
            spec["strides"] = list(tensor.stride())
            if any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape)):
                spec["expanded"] = True
        self.tensors.append(tensor)
        return spec

    def hash(self, overload):
        call = json.dumps([overload, self.args, self.kwargs], sort_keys=True)
        digest = hashlib.blake2b(call.encode(), digest_size=12)
        for tensor in self.tensors:
            digest.update(bytes_of(values_of(tensor)))
        return digest.hexdigest()

    def shape(self):
        """The call without values and sizes: dtypes, numbers of dimensions, and which arguments are there."""
        def outline(form):
            if isinstance(form, dict) and "tensor" in form:
                empty = 0 in form["shape"]
                return f"{form['dtype']}{len(form['shape'])}{'s' if 'strides' in form else ''}{'e' if empty else ''}"
            if isinstance(form, list):
                return [outline(each) for each in form[:4]]
            return form if isinstance(form, (bool, str, dict, type(None))) else type(form).__name__
        named = {key: outline(form) for key, form in self.kwargs.items()}
        return json.dumps([[outline(form) for form in self.args], named])

    def words(self):
        """The call as a reader would write it, with the values of small tensors."""
        parts = [self.spelled(form) for form in self.args]
        return ", ".join(parts + [f"{name}={self.spelled(form)}" for name, form in self.kwargs.items()])

    def spelled(self, form):
        if isinstance(form, list):
            return "[" + ", ".join(self.spelled(each) for each in form) + "]"
        if isinstance(form, dict):
            if "tensor" not in form:
                return str(next(iter(form.values())))
            text = f"{form['dtype']}{form['shape']}" + (f" of strides {form['strides']}" if "strides" in form else "")
            tensor = self.tensors[form["tensor"]]
            return text + (f" {values_of(tensor).tolist()}" if 0 < tensor.numel() <= MOST_WORDS else "")
        return repr(form)
