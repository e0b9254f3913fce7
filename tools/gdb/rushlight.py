"""gdb printers for Rushlight's types: tensors with their first values, storages, key sets, scalars, lists, graph nodes.

They read memory and call no function of the program, so they work on core dumps and in optimised builds too, as long as
there is debug information. Every program that links Rushlight carries this file (tools/gdb/embed.cpp); docs/debugging.md
says how to let gdb load it.
"""
import math
import re
import struct

import gdb
import gdb.printing

MAX_VALUES = 24  # of one tensor
MAX_DIMS = 64  # more can only be memory that was never initialised
# Enumerator of rush::ScalarType: name, bytes, format of the struct module or a function that decodes. A format of more
# bytes than the dtype has means that the dtype is its upper bytes.
DTYPES = {
    "Byte": ("uint8", 1, "B"), "Char": ("int8", 1, "b"), "Short": ("int16", 2, "h"), "Int": ("int32", 4, "i"),
    "Long": ("int64", 8, "q"), "Half": ("float16", 2, "e"), "Float": ("float32", 4, "f"), "Double": ("float64", 8, "d"),
    "ComplexFloat": ("complex64", 8, "ff"), "ComplexDouble": ("complex128", 16, "dd"), "Bool": ("bool", 1, "?"),
    "BFloat16": ("bfloat16", 2, "f"), "Float8_e5m2": ("float8_e5m2", 1, "e"),
    "Float8_e4m3fn": ("float8_e4m3fn", 1, lambda raw: (e4m3fn(raw[0]),)), "UInt16": ("uint16", 2, "H"),
    "UInt32": ("uint32", 4, "I"), "UInt64": ("uint64", 8, "Q"),
}


def e4m3fn(bits):
    sign, exponent, fraction = -1. if bits & 0x80 else 1., bits >> 3 & 15, bits & 7
    if bits & 0x7f == 0x7f:
        return math.nan
    return sign * (math.ldexp(8 + fraction, exponent - 10) if exponent else math.ldexp(fraction, -9))


# ---- reading what the standard library and core/ are made of ---------------------------------------------------------

def enumerator(value):
    """The last part of an enumerator's name: "Float" of rush::ScalarType::Float; None when it is out of range."""
    for field in value.type.strip_typedefs().fields():
        if field.enumval == int(value):
            return field.name.split("::")[-1]
    return None


DEVICE_BITS = 8  # of a KeySet, below its dispatch keys


def enumerators(type_name):
    return [(f.name.split("::")[-1], f.enumval) for f in gdb.lookup_type(type_name).fields()]


def find_field(value, name, code):
    """The member `name` of a kind of type, in a value or one of its bases: libstdc++ hides them deep."""
    for field in value.type.strip_typedefs().fields():
        if field.name == name and field.type.strip_typedefs().code == code:
            return value[field]
        if field.is_base_class:
            found = find_field(value[field], name, code)
            if found is not None:
                return found
    return None


def unique_pointer(value):
    return find_field(value["_M_t"]["_M_t"], "_M_head_impl", gdb.TYPE_CODE_PTR)


def atomic(value):
    return int(find_field(value, "_M_i", gdb.TYPE_CODE_INT))


def array_elements(value):  # ArrayRef, InlineVector
    return [value["data_"][i] for i in range(checked_size(value["size_"]))]


def small_list_elements(value):
    size, capacity = checked_size(value["size_"]), value.type.strip_typedefs().template_argument(1)
    first = value["first_"]["_M_elems"] if size <= int(capacity) else value["all_"]["_M_impl"]["_M_start"]
    return [first[i] for i in range(size)]


def checked_size(size):
    if not 0 <= int(size) <= 1 << 24:
        raise gdb.MemoryError("size %d: not initialised?" % int(size))
    return int(size)


def ints(value):
    if int(value["size_"]) > MAX_DIMS:
        raise gdb.MemoryError("%d dimensions: not initialised?" % int(value["size_"]))
    return [int(x) for x in array_elements(value)]


def class_name(pointer):
    """Of what a pointer to a class with virtual functions points to; from symbols, where there is no debug information."""
    table = pointer.cast(gdb.lookup_type("long").pointer()).dereference()
    symbol = gdb.execute("info symbol %#x" % int(table), to_string=True)
    found = re.match("vtable for (.*?) \\+ ", symbol)
    return found.group(1).split("::")[-1] if found else str(pointer.dynamic_type.target())


def key_names(bits):
    """Those of a KeySet, the highest first, and then its devices."""
    keys = reversed(enumerators("rush::DispatchKey"))
    devices = reversed(enumerators("rush::DeviceType"))
    return ([name for name, number in keys if number > 0 and bits >> (DEVICE_BITS + number) & 1] +
            [name for name, number in devices if bits >> number & 1])


def device_text(device):
    name, index = enumerator(device["type"]["value"]), int(device["index"]["value"])
    if name is None:  # added at run time; by its address, since the library may have no debug information
        names = gdb.parse_and_eval("(char **) &'rush::detail::device_type_names'")
        name = names[int(device["type"]["value"])].string()
    name = name.lower()
    return name if index < 0 else "%s:%d" % (name, index)


def number_text(value):
    if isinstance(value, float):
        return ("%.6g" % value) + ("" if value != int(value) else ".") if abs(value) < 1e6 else "%.6g" % value
    return str(value)


# ---- tensors ---------------------------------------------------------------------------------------------------------

def element_text(address, code):
    _, size, form = DTYPES[code]
    raw = gdb.selected_inferior().read_memory(address, size).tobytes()
    if callable(form):
        parts = form(raw)
    else:
        parts = struct.unpack("<" + form, b"\0" * (struct.calcsize("<" + form) - size) + raw)
    if len(parts) == 2:
        imaginary = number_text(parts[1])
        return number_text(parts[0]) + ("" if imaginary.startswith("-") else "+") + imaginary + "j"
    return number_text(parts[0])


def values_text(address, sizes, strides, code):
    """Nested brackets around the first elements, in the order of their indices."""
    left = [MAX_VALUES]

    def write(dim, at):
        if dim == len(sizes):
            left[0] -= 1
            return element_text(address + at * DTYPES[code][1], code)
        items = []
        for i in range(sizes[dim]):
            if left[0] <= 0:
                items.append("...")
                break
            items.append(write(dim + 1, at + i * strides[dim]))
        return "[" + ", ".join(items) + "]"

    return write(0, 0)


def shape_text(sizes, dtype):
    return "%s[%s]" % (DTYPES[enumerator(dtype)][0], ", ".join(map(str, sizes)))


def has_autograd(impl):
    bit = dict(enumerators("rush::DispatchKey"))["Autograd"]
    base = impl["view_base_"]["target_"]
    return bool(int(impl["keys_"]["bits_"]) >> (DEVICE_BITS + bit) & 1 or base and has_autograd(base.dereference()))


def grad_fn(impl):
    """A pointer to the node that made a tensor, or None."""
    base = unique_pointer(impl["autograd_meta_"])
    if not base:
        return None
    try:
        meta = base.cast(gdb.lookup_type("rush::AutogradMeta").pointer())  # the only class derived from AutogradMetaBase
    except gdb.error:  # the library was built without debug information
        return None
    node = meta["grad_fn"]["target_"]
    return node if node else None


def history_text(impl):
    node = grad_fn(impl)
    return ", grad_fn=" + node_text(node) if node else ", requires_grad"


def tensor_text(impl, with_values=True):
    sizes, strides, dtype = ints(impl["sizes_"]), ints(impl["strides_"]), impl["dtype_"]
    storage = impl["storage_"]["target_"]
    text = "%s %s" % (shape_text(sizes, dtype), device_text(impl["device_"]))
    contiguous, step = [], 1
    for size in reversed(sizes):
        contiguous.insert(0, step)
        step *= max(size, 1)
    if strides != contiguous:
        text += ", strides=[%s]" % ", ".join(map(str, strides))
    if int(impl["storage_offset_"]):
        text += ", storage_offset=%d" % int(impl["storage_offset_"])
    if has_autograd(impl):
        text += history_text(impl)
    if not storage:
        return text + ", no storage"
    if enumerator(impl["layout_"]) != "Strided":
        return text + ", layout=%s, version=%d" % (enumerator(impl["layout_"]), atomic(storage["version_"]))
    text += ", version=%d" % atomic(storage["version_"])
    if not with_values or enumerator(impl["device_"]["type"]["value"]) != "CPU":
        return text
    code = enumerator(dtype)
    start = int(storage["data_"]) + int(impl["storage_offset_"]) * DTYPES[code][1]
    return text + ": " + values_text(start, sizes, strides, code)


def storage_text(storage):
    return "%d bytes at %#x, %s, version=%d, use_count=%d" % (
        int(storage["nbytes_"]), int(storage["data_"]), device_text(storage["device_"]), atomic(storage["version_"]),
        atomic(storage["count_"]))


def saved_text(saved):
    impl = saved["tensor_"]["impl_"]["target_"]
    if saved["released_"]:
        return "freed by an earlier backward pass"
    if saved["packed_"]["_M_ptr"]:
        return "packed by hooks"
    if not impl:
        return "nothing"
    then, now = int(saved["version_"]), atomic(impl["storage_"]["target_"]["version_"])
    stale = "" if then == now else " (saved at version %d: written in place since)" % then
    return tensor_text(impl) + stale


# ---- scalars and the graph -------------------------------------------------------------------------------------------

def scalar_text(scalar):
    kind = enumerator(scalar["type_"])
    if kind == "Bool":
        return "true" if int(scalar["integer_"]) else "false"
    if kind == "Long":
        return str(int(scalar["integer_"]))
    if kind == "Double":
        return number_text(float(scalar["real_"]))
    return "%s%+gj" % (number_text(float(scalar["real_"])), float(scalar["imag_"]))


def node_text(pointer):
    """ "MulBackward #12" """
    return "%s #%d" % (class_name(pointer), int(pointer["sequence_nr_"]))


def edge_text(edge):
    node = edge["node"]["target_"]
    if not node:
        return "none"
    slot = int(edge["slot"])
    return node_text(node) + (", output %d" % slot if slot else "")


def is_node(type):
    if type.code != gdb.TYPE_CODE_STRUCT:
        return False
    return type.name == "rush::Node" or any(f.is_base_class and is_node(f.type.strip_typedefs()) for f in type.fields())


def node_members(node):
    """What a derivative keeps: the members of its struct and of those between it and Node."""
    for field in node.type.strip_typedefs().fields():
        if not field.is_base_class:
            if not field.name.startswith("_vptr") and hasattr(field, "bitpos"):
                yield field.name, node[field]
        elif field.type.strip_typedefs().name != "rush::Node":
            yield from node_members(node[field])


# ---- the printers ----------------------------------------------------------------------------------------------------

class Printer:
    """Says what is wrong instead of a traceback when memory holds no such object."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return self.text(self.value)
        except (gdb.error, gdb.MemoryError, TypeError, AttributeError, KeyError, ValueError) as problem:
            return "<cannot be read: %s>" % problem


def printer_of(function):
    return type(function.__name__, (Printer,), {"text": staticmethod(function)})


def tensor(value):
    impl = value["impl_"]["target_"]
    return tensor_text(impl) if impl else "undefined"


def pointer(value):
    target = value["target_"]
    if not target:
        return "null"
    known = target.type.target().strip_typedefs()
    if known.name == "rush::TensorImpl":
        return tensor_text(target)
    if known.name == "rush::StorageImpl":
        return storage_text(target)
    return node_text(target) if is_node(known) else "(%s) %#x" % (target.dynamic_type, int(target))


class Elements(Printer):
    read = staticmethod(array_elements)

    def text(self, value):
        elements = self.read(value)
        argument = value.type.strip_typedefs().template_argument(0).strip_typedefs()
        if argument.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_FLT):
            return "[%s]" % ", ".join(map(str, elements))
        return None if elements else "[]"  # gdb prints the children

    def children(self):
        if self.to_string() is None:
            yield from (("[%d]" % i, element) for i, element in enumerate(self.read(self.value)))

    def display_hint(self):
        return "array"


class SmallListElements(Elements):
    read = staticmethod(small_list_elements)


class NodePrinter(Printer):
    def __init__(self, value):
        super().__init__(value.cast(value.dynamic_type))

    @staticmethod
    def text(node):
        return node_text(node.address)

    def children(self):
        if self.to_string().startswith("<"):
            return
        yield "next_edges", self.value["next_edges_"]
        yield "outputs", self.value["outputs_"]
        yield from node_members(self.value)


PRINTERS = {
    "Tensor": printer_of(tensor),
    "TensorImpl": printer_of(tensor_text),
    "StorageImpl": printer_of(storage_text),
    "intrusive_ptr<.*>": printer_of(pointer),
    "KeySet": printer_of(lambda keys: "{%s}" % ", ".join(key_names(int(keys["bits_"])))),
    "Scalar": printer_of(scalar_text),
    "ScalarType": printer_of(lambda dtype: DTYPES[enumerator(dtype)][0]),
    "Device": printer_of(device_text),
    "ArrayRef<.*>": Elements,
    "InlineVector<.*>": Elements,
    "SmallList<.*>": SmallListElements,
    "Saved": printer_of(saved_text),
    "Edge": printer_of(edge_text),
    "GradMetadata": printer_of(
        lambda output: "%s %s" % (shape_text(ints(output["sizes"]), output["dtype"]), device_text(output["device"]))),
}


class Collection(gdb.printing.PrettyPrinter):
    def __init__(self):
        super().__init__("rushlight")
        self.by_name = [(re.compile("^rush::%s$" % pattern), printer) for pattern, printer in PRINTERS.items()]

    def __call__(self, value):
        type = gdb.types.get_basic_type(value.type)
        name = type.name or ""
        for pattern, printer in self.by_name:
            if pattern.match(name):
                return printer(value)
        return NodePrinter(value) if is_node(type) else None


gdb.printing.register_pretty_printer(gdb.current_objfile(), Collection(), replace=True)
