"""Records each call of an operator that a program makes, and makes cases of those that can be repeated."""
import collections
import re
import time

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from answer import Refused, as_at_the_start
from calls import PLAIN, Arguments, Unfit
from cases import make_case, make_refusal

# Their results, or parts of them, are what happens to lie in memory, or depend on the storage behind a view.
UNDEFINED = frozenset(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize resize_ resize_as_ set_ "
    "_resize_output_ _empty_affine_quantized _reshape_alias _efficientzerotensor".split())
MISSING, MORE = "operators that we lack", "more calls of a kind"
NOT_BELOW_AUTOGRAD = {torch.Tensor.backward, torch.Tensor.requires_grad_, torch.Tensor.register_hook}


class Recorder:
    """Turns calls into cases, each once. `operators` are the names of those that ours has."""

    def __init__(self, files, operators, pattern="", dtypes=(), most=30, most_alike=2, seconds=None):
        self.files, self.operators, self.dtypes = files, operators, frozenset(dtypes)
        self.pattern, self.most, self.most_alike = re.compile(pattern), most, most_alike
        self.until = time.monotonic() + seconds if seconds else None
        self.calls = self.made = self.refusals = 0
        self.left_out, self.missing = collections.Counter(), collections.Counter()
        self.seen, self.alike, self.of_kind = set(), collections.Counter(), collections.Counter()
        self.verdicts = {}  # why calls of an operator cannot become cases, or None
        self.is_busy = False

    def is_late(self):
        return self.until is not None and time.monotonic() > self.until

    def take(self, func, args, kwargs):
        if self.is_busy:
            return
        self.calls += 1
        self.is_busy = True
        try:
            self.check(func)
            kind = self.kind_of(func, args, kwargs)
            with as_at_the_start():
                self.record(func, args, kwargs, kind)
        except Unfit as unfit:
            self.left_out[str(unfit)] += 1
        finally:
            self.is_busy = False

    def check(self, func):
        """Throws Unfit unless calls of the operator can become cases."""
        if func not in self.verdicts:
            self.verdicts[func] = self.verdict(func)
        if self.verdicts[func] == MISSING:
            self.missing[name_of(func)] += 1
        if self.verdicts[func]:
            raise Unfit(self.verdicts[func])

    def verdict(self, func):
        name = name_of(func)
        if func.namespace != "aten" or not self.pattern.search(name):
            return "an operator that was not asked for"
        if name not in self.operators:
            return MISSING
        if torch.Tag.nondeterministic_seeded in func.tags:
            return "random numbers"
        if name.removeprefix("aten::").partition(".")[0] in UNDEFINED:
            return "undefined results"
        return None

    def kind_of(self, func, args, kwargs):
        """The operator and the dtypes of a call. Throws Unfit where there are enough of them."""
        values = [each for value in (*args, *kwargs.values())
                  for each in (value if isinstance(value, (list, tuple)) else (value,))]
        dtypes = {name_of_dtype(value) for value in values if isinstance(value, torch.Tensor)}
        if self.dtypes and not dtypes <= self.dtypes:
            raise Unfit("a dtype that was not asked for")
        kind = (func, *sorted(dtypes))
        if self.of_kind[kind] >= self.most:
            raise Unfit(MORE)
        return kind

    def record(self, func, args, kwargs, kind):
        arguments = Arguments(func._schema, args, kwargs)
        shape = (func, arguments.shape())
        if self.alike[shape] >= self.most_alike:
            raise Unfit(MORE)
        name = arguments.hash(name_of(func))
        if name in self.seen:
            raise Unfit("a repetition")
        self.seen.add(name)
        try:
            self.files.add(*make_case(func, arguments, args, kwargs, name))
        except Refused as refused:
            self.files.add(*make_refusal(func, arguments, name, refused.why))
            self.refusals += 1
        self.of_kind[kind] += 1
        self.alike[shape] += 1
        self.made += 1

    def summary(self):
        return {"calls": self.calls, "made": self.made, "refusals": self.refusals, "left_out": dict(self.left_out),
                "missing": dict(self.missing)}


def name_of(func):
    """"aten::add.Tensor"."""
    schema = func._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def name_of_dtype(tensor):
    return str(tensor.dtype).removeprefix("torch.")


class Operators(TorchDispatchMode):
    """Shows the recorder each operator, and those that a composite one is made of."""

    def __init__(self, recorder, when_late):
        super().__init__()
        self.recorder, self.when_late = recorder, when_late

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.recorder.take(func, args, kwargs)
        if self.recorder.is_late():
            self.when_late()
        if isinstance(func, torch._ops.OpOverload) and func._can_decompose():
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)


class Functions(TorchFunctionMode):
    """Calls functions whose arguments need no gradient below autograd, where composite operators are still whole."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in NOT_BELOW_AUTOGRAD or not needs_no_autograd((args, kwargs)):
            return func(*args, **kwargs)
        with torch._C._AutoDispatchBelowAutograd():
            return func(*args, **kwargs)


def needs_no_autograd(arguments):
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    with torch._C.DisableTorchFunction():
        tensors = [value for value in pytree.tree_leaves(arguments) if isinstance(value, torch.Tensor)]
        return all(type(value) in PLAIN and not value.requires_grad for value in tensors)
