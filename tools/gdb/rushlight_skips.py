"""What gdb's `step` goes over, so that it follows a call from the program to the arithmetic: the standard library, functions
that only read a member, and what prepares a call beside its way to the kernel.

They are gdb's own rules, which `info skip` lists. `set rush-skip accessors` steps into the preparations too, and
`set rush-skip off` into everything. Every program that links Rushlight carries this file beside rushlight.py.
"""
import gdb

# Files of containers and of functions that only read a member, by the ends of their paths.
ACCESSOR_FILES = [
    "core/array_ref.h", "core/device/device.h", "core/device/stream.h", "core/dispatch/key.h", "core/dispatch/op.h",
    "core/half.h", "core/intrusive_ptr.h", "core/layout.h", "core/scalar.h", "core/scalar_type.h", "core/small_list.h",
    "core/storage.h", "core/tensor_impl.h", "core/tensor_options.h", "core/type_meta.h",
]
# The beginnings of names of functions, as regular expressions without spaces and backslashes, which gdb would take out.
LIBRARY = ["(std|__gnu_cxx|__cxxabiv1)::", "operator.(new|delete)"]
ACCESSORS = [
    "Tensor::operator=[(]rush::Tensor(.const)?&+[)].&$",  # of a variable; that of a temporary is a call of copy_
    "Tensor::(Tensor|~Tensor|defined|impl|impl_ptr|is_[a-z_]+|borrow|unborrow|checked|self|use_count)[(]",
    "Tensor::(sizes|strides|dim|numel|nbytes|storage|storage_offset|element_size|scalar_type|dtype|device|layout)[(]",
    "Tensor::(options|requires_grad|data_ptr|bump_version|size|stride)[(<]",
    "TensorIterator::(device_type|op|ntensors|operand|dtype|common_dtype|numel|dim|shape|is_flat|output|take_output)[(]",
    "TensorIterator::(Inputs|Operand|~TensorIterator)",
    "Node::(sequence_nr|next_edges|needs|num_outputs|output_metadata|stream|pre_hooks|post_hooks|forward_call)[(]",
    "Kernel<.*>::(has|name|runs_on_cpu)[(]", "Edge::", "given[(]", "[A-Za-z]+Guard::", "(autograd::)?(Auto)?GradMode::",
    "autograd::AnomalyMode::", "profiler::", "cpu::(load|element)<", "DevicePredicates<", "ErrorContext::",
    "nn::(ModuleHolder<.*>::get|detail::ModulePointer|ModuleScope::)", "nn::functional::optional_tensor",
    "optim::[A-Za-z]+Options(<.*>)?::[a-z_]+[(][)].const", "graphs::is_capturing", "check_stack_space",
    "(checked_numel|wrap_mul|wrap_add|wrap_dim|is_contiguous|storage_extent)[(<]", "detail::bump_if_written",
]
# Keys of arguments, memory for results, the iterator of an element-wise loop and what it makes of its operands, the check
# of a sum's factor, nodes of the graph and their edges.
PREPARATIONS = [
    "detail::(keys_of|device_key|check_written|is_undefined|is_meta_argument|wants_grad|add_edges|refuse_gradients)",
    "detail::(save_inputs|save_results|record|record_results|forget_view)",
    "(autograd::remember_forward_call|gradient_edge|set_history|check_inplace|alias_for_saving|preserve_if_saved)[(]",
    "TensorIterator::(TensorIterator|pointwise|nullary|finish)[(]", "pick(_bytes)?<", "cpu::is_one_run<",
    "native::check_factor[(]",
    "detail::(empty_contiguous|empty_format|empty_strided|wrapped_number)", "autograd::.anonymous.namespace.::root_",
]


def rules():
    """Of each rule: the setting from which on it is in force, gdb's option, the pattern."""
    for file in ACCESSOR_FILES:
        yield "accessors", "-gfi", file
    for name in LIBRARY:
        yield "accessors", "-rfu", "^" + name
    for name in ACCESSORS:
        yield "accessors", "-rfu", "^rush::" + name
    for name in PREPARATIONS:
        yield "all", "-rfu", "^rush::" + name


def numbers_by_pattern():
    """gdb's number of each rule that it has."""
    numbers = {}
    for line in gdb.execute("info skip", to_string=True).splitlines()[1:]:
        number, _, _, file, is_expression, function = line.split(None, 5)
        numbers[function.strip() if is_expression == "y" else file] = number
    return numbers


class Skip(gdb.Parameter):
    """What `step` goes over: "all" that is not on the way of a call to its kernel, only "accessors" and the standard library,
or nothing ("off"). `skip disable` and `info skip` work on single rules."""

    set_doc = "Set what `step` goes over in Rushlight: all, accessors or off."
    show_doc = "Show what `step` goes over in Rushlight."
    SETTINGS = ["off", "accessors", "all"]

    def __init__(self):
        super().__init__("rush-skip", gdb.COMMAND_RUNNING, gdb.PARAM_ENUM, self.SETTINGS)
        self.value = "all"
        known = numbers_by_pattern()
        for _, option, pattern in rules():
            if pattern not in known:
                gdb.execute("skip %s %s" % (option, pattern), to_string=True)

    def get_set_string(self):
        numbers, chosen = numbers_by_pattern(), self.SETTINGS.index(self.value)
        for setting, _, pattern in rules():
            if pattern in numbers:
                able = "enable" if self.SETTINGS.index(setting) <= chosen else "disable"
                gdb.execute("skip %s %s" % (able, numbers[pattern]), to_string=True)
        return ""

    def get_show_string(self, value):
        return "step goes over: %s" % value


Skip()
