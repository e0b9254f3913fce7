"""gdb commands that stop at an operator, a kernel or a node of the backward pass, where a tensor is written, where a shape is
given to an operator, and where a NaN is made; and one that draws a graph. docs/debugger_commands.md shows each.

They use rushlight.py's functions: programs that link Rushlight carry both files. They need the library's own debug
information, so a Debug build.
"""
import os
import re

import gdb

LIBRARY_FRAME = re.compile(r"^(rush|std)::")
OPERATOR_FRAME = re.compile(r"^rush::Op<.*>::(operator\(\)|call_without)")


# ---- what a command is given ----------------------------------------------------------------------------------------

def require_process(command):
    if not gdb.selected_thread():
        raise gdb.GdbError("%s: start the program first, with `start`" % command)


def value_of(command, expression):
    if not expression.strip():
        raise gdb.GdbError("%s: name a tensor, as in: %s loss" % (command, command))
    try:
        return referenced(gdb.parse_and_eval(expression))
    except gdb.error as error:
        raise gdb.GdbError("%s: %s" % (command, error))


# ---- reading the stack -----------------------------------------------------------------------------------------------

def type_name(value):
    return value.type.strip_typedefs().unqualified().name or ""


def referenced(value):
    is_reference = value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
    return value.referenced_value() if is_reference else value


def arguments(frame):
    """Those of the frame's function, in order, without `this` and what its class adds in front."""
    block = frame.block()
    while block.function is None:
        block = block.superblock
    return [referenced(symbol.value(frame)) for symbol in block if symbol.is_argument and symbol.name.startswith("args#")]


def frames_from(frame):
    while frame is not None:
        yield frame
        frame = frame.older()


def operator_frame():
    """Where the operator that this thread is in was called, or None. A call enters it again below autograd."""
    found = None
    for frame in frames_from(gdb.newest_frame()):
        if frame.function() and OPERATOR_FRAME.match(frame.name()):
            if found and frame.read_var("this") != found.read_var("this"):
                break
            found = frame
    return found


def schema_of(frame):
    return frame.read_var("this").dereference()["schema_"].string()


def argument_names(schema):
    """Of "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor": self, other, alpha."""
    inside = re.sub(r"\([a-z][^)]*\)|\[[^\]]*\]", "", schema.partition("(")[2].rpartition(") ->")[0])
    words = [part.partition("=")[0].split() for part in inside.split(",")]
    return [each[-1] for each in words if each and each != ["*"]]


def optional_value(value):
    """What a std::optional holds, or None."""
    payload = value["_M_payload"]
    return payload["_M_payload"]["_M_value"] if payload["_M_engaged"] else None


def short_text(value):
    """As `print` shows it, but a tensor without its elements, and an optional as what it holds."""
    name = type_name(value)
    if name.startswith("std::optional<"):
        held = optional_value(value)
        return "none" if held is None else short_text(held)
    if name != "rush::Tensor":
        return value.format_string()
    impl = value["impl_"]["target_"]
    return tensor_text(impl, with_values=False) if impl else "undefined"


def call_text(frame):
    """ "aten::mul.Tensor(self = float32[3] cpu, version=0; other = ...)", of a frame of an operator's call."""
    schema = schema_of(frame)
    given = ["%s = %s" % (name, short_text(value)) for name, value in zip(argument_names(schema), arguments(frame))]
    return "%s(%s)" % (schema.partition("(")[0], "; ".join(given))


def callers_text(frame):
    """The functions from a frame out to the first one that is not the library's."""
    texts = []
    for each in frames_from(frame):
        name, place = each.name() or "?", each.find_sal()
        at = " (%s:%d)" % (os.path.basename(place.symtab.filename), place.line) if place.symtab else ""
        texts.append(re.sub(r"[(<].*", "", name.replace("(anonymous namespace)::", "").replace("operator()", "call")) + at)
        if not LIBRARY_FRAME.match(name):
            break
    return " < ".join(texts)


def shapes_in(value):
    """Those of the tensors in an argument of an operator."""
    name = type_name(value)
    if name == "rush::Tensor":
        impl = value["impl_"]["target_"]
        return [ints(impl["sizes_"])] if impl else []
    if name == "std::optional<rush::Tensor>":
        held = optional_value(value)
        return [] if held is None else shapes_in(held)
    if name == "rush::ArrayRef<rush::Tensor>":
        return [shape for tensor in array_elements(value) for shape in shapes_in(tensor)]
    return []


# ---- run to the next -------------------------------------------------------------------------------------------------

class Place(gdb.Breakpoint):
    """A breakpoint that is on only while a command runs the program to it."""

    def __init__(self, function, wanted=lambda frame: True):
        super().__init__(function, internal=True)
        self.wanted, self.silent, self.enabled, self.reached = wanted, True, False, False

    def stop(self):
        self.reached = self.wanted(gdb.newest_frame())
        return self.reached


def require_lines(breakpoint):
    """Removes a breakpoint in code without debug information, where there are no arguments to look at, and says so."""
    if breakpoint.pending or not any(location.source for location in breakpoint.locations):
        function = breakpoint.location
        breakpoint.delete()
        raise gdb.GdbError("%s has no debug information here: `./rush --debug build` makes it" % function)


def run_to(place):
    """Whether the program stopped there, which gdb does not say, and not elsewhere before."""
    place.reached, place.enabled = False, True
    try:
        gdb.execute("continue")
    finally:
        if place.is_valid():
            place.enabled = False
    return place.reached


def start_of_body(function):
    """The address after a function's prologue, where its arguments can be read; of the function without line numbers."""
    symtab, block = gdb.find_pc_line(function).symtab, gdb.block_for_pc(function)
    lines = symtab.linetable() if symtab and block else []
    return min((line.pc for line in lines if block.start < line.pc < block.end), default=function)


class StartOfBody(gdb.Breakpoint):
    def __init__(self, function):
        super().__init__("*%d" % start_of_body(function), internal=True, temporary=True)
        self.silent, self.reached = True, False

    def stop(self):
        self.reached = True
        return True


class NextCommand(gdb.Command):
    """A command that runs the program to a function of the library."""

    function = None  # named by derived classes
    place = None

    def __init__(self, name):
        super().__init__(name, gdb.COMMAND_RUNNING)
        self.name = name

    def wanted(self, frame):
        return True

    def invoke(self, argument, from_tty):
        require_process(self.name)
        self.argument = argument.strip()
        if self.place is None or not self.place.is_valid():
            self.place = Place(self.function, lambda frame: self.wanted(frame))
            require_lines(self.place)
        if run_to(self.place):
            self.arrived(gdb.newest_frame())


class NextOperator(NextCommand):
    """rush-next-op [NAME]: run to the next call of an operator, or of the next one whose name contains NAME."""

    function = "rush::Op::operator()"

    def wanted(self, frame):
        return not self.argument or self.argument in schema_of(frame).partition("(")[0]

    def arrived(self, frame):
        print(call_text(frame))
        print("called by " + callers_text(frame.older()))


class NextKernel(NextCommand):
    """rush-next-kernel [NAME]: run to the next kernel, the function of a device that computes an operator's result."""

    function = "rush::Kernel::operator()"

    @staticmethod
    def kernel(frame):
        return frame.read_var("this").dereference()

    def function_of(self, frame):
        return int(self.kernel(frame)["table_"][int(frame.read_var("device"))])

    def wanted(self, frame):
        return self.function_of(frame) != 0 and self.argument in self.kernel(frame)["name_"].string()

    def arrived(self, frame):
        print('kernel "%s" of %s' % (self.kernel(frame)["name_"].string(), enumerator(frame.read_var("device"))))
        if run_to(StartOfBody(self.function_of(frame))):
            gdb.execute("frame")


class NextNode(NextCommand):
    """rush-next-node [NAME]: run to the next node of the backward pass."""

    function = "rush::BackwardPass::apply"

    @staticmethod
    def node(frame):
        return frame.read_var("node").referenced_value().address

    def wanted(self, frame):
        return self.argument in node_text(self.node(frame))

    def arrived(self, frame):
        grads = vector_elements(referenced(frame.read_var("grads")))
        print("%s is given %s" % (node_text(self.node(frame)), "; ".join(map(short_text, grads))))
        table = gdb.execute("info vtbl *(rush::Node *) %d" % int(self.node(frame)), to_string=True)
        if run_to(StartOfBody(int(re.search(r"(0x[0-9a-f]+) <[^\n]*::apply\(", table).group(1), 16))):
            gdb.execute("frame")


def vector_elements(value):
    first, last = value["_M_impl"]["_M_start"], value["_M_impl"]["_M_finish"]
    return [first[i] for i in range(checked_size(last - first))]


# ---- stop where ------------------------------------------------------------------------------------------------------

class InOperator(gdb.Breakpoint):
    """One that says what happened and in which call of an operator, and selects that call's frame."""

    def __init__(self, *place):
        super().__init__(*place)
        self.silent, self.stopped = True, False

    def stop(self):
        self.stopped = self.happens()
        return self.stopped

    def happens(self):
        return True

    def what_happened(self):
        raise NotImplementedError


def report(event):
    """Of all breakpoints at the place where the program stopped, those that stopped it."""
    for breakpoint in getattr(event, "breakpoints", []):
        if isinstance(breakpoint, InOperator) and breakpoint.stopped:
            breakpoint.stopped = False
            frame = operator_frame()
            print("Breakpoint %d: %s" % (breakpoint.number, breakpoint.what_happened()))
            if frame:
                print("in " + call_text(frame))
                print("called by " + callers_text(frame.older()))
                frame.select()
            else:
                print("outside of an operator, or in code without debug information: `backtrace` shows where")


class ShapeBreakpoint(InOperator):
    def __init__(self, shape):
        super().__init__("rush::Op::operator()")
        self.shape = shape

    def happens(self):
        return any(self.shape in shapes_in(value) for value in arguments(gdb.newest_frame()))

    def what_happened(self):
        return "an argument of shape %s" % self.shape


class BreakShape(gdb.Command):
    """rush-break-shape SIZE...: a breakpoint where an operator is given a tensor of this shape; of no dimensions without SIZE."""

    def __init__(self):
        super().__init__("rush-break-shape", gdb.COMMAND_BREAKPOINTS)

    def invoke(self, argument, from_tty):
        try:
            shape = [int(size) for size in gdb.string_to_argv(argument.replace(",", " "))]
        except ValueError:
            shape = [-1]
        if any(size < 0 for size in shape):
            raise gdb.GdbError("rush-break-shape: the sizes are numbers, as in: rush-break-shape 2 3")
        require_lines(ShapeBreakpoint(shape))


class WriteWatchpoint(InOperator):
    def __init__(self, type, address, name, text):
        super().__init__("*(%s *) %#x" % (type, address), gdb.BP_WATCHPOINT, gdb.WP_WRITE)
        self.name, self.text, self.before = name, text, text()

    def what_happened(self):
        before, self.before = self.before, self.text()
        return "%s: %s -> %s" % (self.name, before, self.before)


class BreakWrite(gdb.Command):
    """rush-break-write TENSOR: a watchpoint where an operator writes to the tensor's memory in place.
rush-break-write TENSOR, INDEX...: where this element changes, whoever writes it."""

    UNSIGNED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long", 16: "unsigned __int128"}

    def __init__(self):
        super().__init__("rush-break-write", gdb.COMMAND_BREAKPOINTS, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        expression, _, rest = argument.partition(",")
        impl = value_of("rush-break-write", expression)["impl_"]["target_"]
        storage = impl["storage_"]["target_"] if impl else 0
        if not storage or not storage["data_"]:
            raise gdb.GdbError("rush-break-write: the tensor has no memory")
        if rest:
            self.watch_element(expression, impl, [int(value_of("rush-break-write", i)) for i in rest.split(",")])
        else:
            version = storage["version_"]
            WriteWatchpoint("unsigned int", int(version.address), expression + ", version", lambda: str(atomic(version)))

    def watch_element(self, expression, impl, index):
        sizes, strides = ints(impl["sizes_"]), ints(impl["strides_"])
        if len(index) != len(sizes) or not all(0 <= i < size for i, size in zip(index, sizes)):
            raise gdb.GdbError("rush-break-write: %s is no index of a tensor of shape %s" % (index, sizes))
        code = enumerator(impl["dtype_"])
        _, size, _ = DTYPES[code]
        at = int(impl["storage_offset_"]) + sum(i * stride for i, stride in zip(index, strides))
        address = int(impl["storage_"]["target_"]["data_"]) + at * size
        WriteWatchpoint(self.UNSIGNED[size], address, "%s%s" % (expression, index), lambda: element_text(address, code))


class NanBreakpoint(InOperator):
    def what_happened(self):
        schema = gdb.parse_and_eval("*(char **) &'rush::detail::nan_made_by'").string()
        return "a NaN in the result of %s, and none in its arguments" % schema.partition("(")[0]


class BreakNan(gdb.Command):
    """rush-break-nan [off]: a breakpoint where an operator's result has a NaN and its arguments have none. The program must
have been started."""

    place = None

    def __init__(self):
        super().__init__("rush-break-nan", gdb.COMMAND_BREAKPOINTS)

    def invoke(self, argument, from_tty):
        require_process("rush-break-nan")
        watching = gdb.parse_and_eval("(unsigned int *) &'rush::watching'").dereference()
        trace = 1 << (DEVICE_BITS + dict(enumerators("rush::DispatchKey"))["Trace"])
        on = argument.strip() != "off"
        gdb.execute("set var *(bool *) &'rush::detail::find_nans' = %d" % on)
        bits = int(watching) | trace if on else int(watching) & ~trace
        gdb.execute("set var *(unsigned int *) &'rush::watching' = %d" % bits)
        if self.place is not None and self.place.is_valid():
            self.place.delete()
        if on:
            self.place = NanBreakpoint("rush::detail::nan_found")


# ---- the graph -------------------------------------------------------------------------------------------------------

def grad_fn_of(tensor):
    impl = tensor["impl_"]["target_"]
    node = grad_fn(impl) if impl else None
    if node is None:
        raise gdb.GdbError("the tensor has no grad_fn")
    return node


class GradFn(gdb.Function):
    """$rush_grad_fn(TENSOR): a pointer to the node that made a tensor."""

    def __init__(self):
        super().__init__("rush_grad_fn")

    def invoke(self, tensor):
        return grad_fn_of(tensor)


class Graph:
    """The nodes that can be reached from one, and whose gradients each waits for."""

    LIMIT = 10000  # nodes

    def __init__(self, root):
        self.edges, self.waits_for, waiting = {}, {}, [root]
        while waiting and len(self.edges) < self.LIMIT:
            node = waiting.pop()
            if int(node) in self.edges:
                continue
            targets = [edge["node"]["target_"] for edge in small_list_elements(node["next_edges_"])]
            self.edges[int(node)] = targets
            for target in targets:
                if target:
                    self.waits_for.setdefault(int(target), []).append(node_text(node))
                    waiting.append(target)

    def line(self, node):
        text, sources = node_text(node), self.waits_for.get(int(node), [])
        names = ["%s%s" % (name, " (%d times)" % sources.count(name) if sources.count(name) > 1 else "")
                 for name in dict.fromkeys(sources)]
        return text + (", waits for " + ", ".join(names) if names else "")

    def print(self, node, depth, indent="", shown=None):
        """The tree below a node, whose own line stands already; each node's own tree once."""
        shown = {int(node)} if shown is None else shown
        targets = self.edges.get(int(node), [])
        for number, target in enumerate(targets):
            is_last = number + 1 == len(targets)
            again = bool(target) and int(target) in shown
            text = "none" if not target else node_text(target) + ", as above" if again else self.line(target)
            hidden = not again and depth == 1 and bool(target) and bool(self.edges.get(int(target)))
            print(indent + ("`- " if is_last else "|- ") + text + (" ..." if hidden else ""))
            if target and not again:
                shown.add(int(target))
                if depth > 1:
                    self.print(target, depth - 1, indent + ("   " if is_last else "|  "), shown)


class GraphCommand(gdb.Command):
    """rush-graph TENSOR [, DEPTH]: the graph behind a tensor, as a tree: each node, and whose gradients it waits for in the
backward pass. To a depth of 30, or DEPTH."""

    def __init__(self):
        super().__init__("rush-graph", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        expression, _, depth = argument.partition(",")
        root = grad_fn_of(value_of("rush-graph", expression))
        graph = Graph(root)
        print(graph.line(root))
        graph.print(root, int(value_of("rush-graph", depth)) if depth else 30)


gdb.events.stop.connect(report)
NextOperator("rush-next-op")
NextKernel("rush-next-kernel")
NextNode("rush-next-node")
BreakShape()
BreakWrite()
BreakNan()
GradFn()
GraphCommand()
