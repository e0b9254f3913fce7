"""Makes cases of calls, in the form of the recorded answers of conformance."""
from answer import Answer
from calls import DTYPES
from case_files import stored

PRECISION = "bfloat16 float16 float8_e5m2 float8_e4m3fn float32 complex64 float64 complex128".split()  # least first
FOLDED = ("linalg_", "fft_", "special_")  # "linalg.qr" is the family of aten::linalg_qr


def family_of(overload):
    name = overload.removeprefix("aten::").partition(".")[0]
    for prefix in FOLDED:
        if name.removeprefix("_").startswith(prefix):
            return name.removeprefix("_").replace("_", ".", 1)
    return name


def least_precise(tensors):
    """The dtype whose tolerance a case is granted."""
    names = {DTYPES[tensor.dtype] for tensor in tensors if tensor is not None}
    return next((name for name in PRECISION if name in names), next(iter(sorted(names)), "float32"))


class Case:
    """A call in a case's form. `tensors` are those that it names."""

    def __init__(self, func, arguments, name):
        self.schema, self.arguments, self.name = str(func._schema), arguments, name
        self.overload = self.schema.partition("(")[0]
        self.tensors = {}

    def keep(self, key, tensor):
        """What names the tensor in the case."""
        key = f"{self.name}.{key}"
        self.tensors[key] = stored(tensor)
        return {"tensor": key, "dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape)}

    def argument(self, form, differentiated):
        if isinstance(form, list):
            return [self.argument(each, differentiated) for each in form]
        if not isinstance(form, dict) or "tensor" not in form:
            return form
        place = form["tensor"]
        named = {**form, **self.keep(place, self.arguments.tensors[place])}
        return {**named, "grad": True} if place in differentiated else named

    def json(self, outputs, differentiated=()):
        return {
            "id": f"{self.overload.removeprefix('aten::')}/{self.name}", "op": family_of(self.overload),
            "overload": self.overload, "schema": self.schema,
            "dtype": least_precise(self.arguments.tensors + outputs),
            "words": f"{self.overload}({self.arguments.words()})",
            "args": [self.argument(form, differentiated) for form in self.arguments.args],
            "kwargs": {key: self.argument(form, differentiated) for key, form in self.arguments.kwargs.items()},
            "outputs": [None if output is None else self.keep(f"o{i}", output) for i, output in enumerate(outputs)],
        }


def make_case(func, arguments, args, kwargs, name):
    """(case, tensors) of a call. Throws Unfit when PyTorch's answer is none that can be compared."""
    answer = Answer(func, args, kwargs, seed=int(name, 16) % (1 << 62))
    case = Case(func, arguments, name)
    line = case.json(answer.outputs, answer.grads)
    for spec, output in zip(line["outputs"], answer.outputs):
        if output is not None and not output.is_conj() and not output.is_neg():
            shared = answer.shared_input(output)
            spec["strides"] = list(output.stride())
            spec["shares"] = None if shared is None else f"{name}.{shared}"
    if answer.is_imprecise():
        line["imprecise"] = True
    if answer.grads:
        line["grad_outputs"] = {str(i): case.keep(f"go{i}", grad) for i, grad in answer.grad_outputs.items()}
        line["grads"] = {f"{name}.{i}": None if grad is None else case.keep(f"g{i}", grad)
                         for i, grad in answer.grads.items()}
    return line, case.tensors


def make_refusal(func, arguments, name, why):
    """(case, tensors) of a call that is to be refused."""
    case = Case(func, arguments, name)
    return {**case.json([]), "refused": why}, case.tensors
