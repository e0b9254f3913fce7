"""The cases that `./rush bench operators` times: operators by their registered names, and inputs for each of them.

Families of operators that take the same inputs are functions below; tensors.rules and nn.rules hold the others. A
rule is the names of operators and the cases that each of them has, with bars between. Indented lines continue it:

    index_select | rows+ f[10000,128], 0, i[8192]<10000 | t f[big]@t, 0, i[1024]<1024

A case is a tag and the arguments, written as in a call in Python. "+" behind the tag adds a case TAG/bwd, which is
the forward pass and the gradients of the sum of its outputs. A tensor is DTYPE[SHAPE]@LAYOUT=FILL; "!" behind it says
that it needs no gradient.

    DTYPE   f bf h d c z i i32 u8 b: float32, bfloat16, float16, float64, complex64, complex128, int64, int32, uint8,
            bool
    SHAPE   sizes; big is 1024,1024
    LAYOUT  t: the last two dimensions are swapped in memory; r: all dimensions are reversed; s: every other element of
            the last one; b: the first dimension is expanded; bl: the last one is; cl: channels_last; else contiguous
    FILL    randn (default of floats), rand:LOW:HIGH, int:LOW:HIGH (default of integers: -50:50), bool:SHARE_OF_TRUE,
            zeros, ones, full:VALUE, sorted, arange, offsets:STEP, softmax, log_softmax; of square matrices spd, which
            is symmetric positive definite, solvable, triangular; <N is =int:0:N; pos, unit, within, ge1: ranges of rand
"""
import pathlib
import re

DTYPES = {
    "f": "float32", "bf": "bfloat16", "h": "float16", "d": "float64", "c": "complex64", "z": "complex128",
    "i": "int64", "i32": "int32", "u8": "uint8", "b": "bool",
}
FILLS = {"pos": "rand:0.1:5", "unit": "rand:0.01:0.99", "within": "rand:-0.99:0.99", "ge1": "rand:1.1:5"}
TENSOR = re.compile(r"(?<![\w'])(f|bf|h|d|c|z|i|i32|u8|b)\[([\d,]*|big)\](?:@(\w+))?(?:=([\w.:-]+)|<(\d+))?(!?)")
# Names that stand for themselves in arguments: both sides know what they mean.
WORDS = {"device": {"device": True}}
WORDS.update({name: {"dtype": name} for name in DTYPES.values()})
WORDS.update({name: {"memory_format": name} for name in ("contiguous_format", "channels_last")})


def tensor(dtype, shape, layout, fill, below, no_grad):
    dtype, shape = DTYPES[dtype], shape.replace("big", "1024,1024")
    default = "int:-50:50" if dtype in ("int64", "int32", "uint8") else "bool" if dtype == "bool" else "randn"
    spec = {"shape": [int(size) for size in shape.split(",") if size], "dtype": dtype}
    spec["fill"] = f"int:0:{below}" if below else FILLS.get(fill, fill) or default
    if layout:
        spec["layout"] = layout
    if no_grad:
        spec["grad"] = False
    return spec


def parsed(arguments):
    """The positional and the keyword arguments that a case has."""
    as_calls = TENSOR.sub(lambda found: f"tensor(*{found.groups()})", arguments)
    names = {"tensor": tensor, "call": lambda *positional, **named: (positional, named), **WORDS}
    return eval(f"call({as_calls})", {"__builtins__": {}}, names)


class Table:
    """Cases by their names."""

    def __init__(self):
        self.cases = {}

    def rule(self, operators, cases):
        for operator in operators.split():
            for case in cases.split(" | "):
                tag, _, arguments = case.strip().partition(" ")
                positional, named = parsed(arguments)
                one = {"op": "aten::" + operator, "args": positional, "kwargs": named}
                self.add(f"{operator}/{tag.rstrip('+')}", one)
                if tag.endswith("+"):
                    self.add(f"{operator}/{tag.rstrip('+')}/bwd", {**one, "grad": True})

    def add(self, name, case):
        assert name not in self.cases, f"two cases are called {name}"
        self.cases[name] = {"id": name, **case}


# ---- families: operators that take the same inputs


def unary(table, operators, fill="", rest="", backward="+", dtypes="bf d", integers=""):
    """Operators of one tensor; `rest` are the arguments behind it."""
    x = f"{fill}{rest}"
    table.rule(operators, f"tiny{backward} f[8]{x} | mid f[64,64]{x} | big{backward} f[big]{x}")
    table.rule(operators, f"big_t f[big]@t{x} | strided f[1024,512]@s{x}")
    for dtype in dtypes.split():
        plus = backward if dtype == "bf" else ""
        table.rule(operators, f"big_{DTYPES[dtype]}{plus} {dtype}[big]{x}")
    for dtype in integers.split():
        table.rule(operators, f"big_{DTYPES[dtype]} {dtype}[big]{rest}")


def binary(table, operators, a="", b="", backward="+", dtypes="bf d", integers="i", divisor=""):
    """Operators of two tensors, with fills a and b; integers of the second one have the fill `divisor`."""
    x, plus = f"f[big]{a}", backward
    table.rule(operators, f"tiny{plus} f[8]{a}, f[8]{b} | mid f[64,64]{a}, f[64,64]{b} | big{plus} {x}, f[big]{b}")
    table.rule(operators, f"row{plus} {x}, f[1024]{b} | col{plus} {x}, f[1024,1]{b} | zerodim {x}, f[]{b}")
    table.rule(operators, f"big_t f[big]@t{a}, f[big]{b}")
    for dtype in dtypes.split():
        table.rule(operators, f"big_{DTYPES[dtype]} {dtype}[big]{a}, {dtype}[big]{b}")
    for dtype in integers.split():
        table.rule(operators, f"big_{DTYPES[dtype]} {dtype}[big], {dtype}[big]{divisor}")


# tag: (shape, layout, dimensions that are reduced)
REDUCED = {
    "first": ("1024,1024", "", "0"), "last": ("1024,1024", "", "1"), "middle": ("64,256,64", "", "1"),
    "ends": ("64,256,64", "", "0, 2"), "nhw": ("16,64,32,32", "", "0, 2, 3"), "hw": ("16,64,32,32", "", "2, 3"),
    "cl_hw": ("16,64,32,32", "@cl", "2, 3"), "t_last": ("1024,1024", "@t", "1"), "t_first": ("1024,1024", "@t", "0"),
    "narrow": ("262144,4", "", "1"), "narrow_first": ("4,262144", "", "0"), "tall": ("262144,4", "", "0"),
    "mid": ("64,64", "", "1"), "tiny": ("8", "", "0"),
}


def reduction(table, operators, backward="", dtypes="", dim="[{}]", fill="", base="f", suffix="", tags=REDUCED):
    """Operators that reduce dimensions, of which `dim` makes an argument; tags in `backward` have a "+"."""
    for tag in tags:
        shape, layout, dims = REDUCED[tag]
        if "[" not in dim and "," in dims:
            continue
        plus = "+" if tag in backward.split() else ""
        table.rule(operators, f"{tag}{suffix}{plus} {base}[{shape}]{layout}{fill}, {dim.format(dims)}")
    for dtype in dtypes.split():
        for tag in ("first", "last", "middle"):
            shape, _, dims = REDUCED[tag]
            table.rule(operators, f"{tag}_{DTYPES[dtype]} {dtype}[{shape}], {dim.format(dims)}")


MOST = "first last middle nhw tiny narrow mid"  # the tags of which most reductions have a backward pass, too


def whole(table, operators, backward="+", dtypes="bf d i"):
    """Operators that reduce all elements."""
    table.rule(operators, f"all_tiny{backward} f[8] | all{backward} f[big] | all_t f[big]@t")
    table.rule(operators, "all_s f[1024,512]@s | all_b f[big]@b | all_mid f[64,64]")
    for dtype in dtypes.split():
        table.rule(operators, f"all_{DTYPES[dtype]} {dtype}[big]")


def elementwise(table):
    unary(table, "ceil floor trunc round frac sgn reciprocal exp2 expm1 sin cos tan atan sinh cosh tanh asinh")
    unary(table, "erf erfc sinc sigmoid nan_to_num i0 hardswish hardsigmoid relu6 selu celu elu silu mish")
    unary(table, "log_sigmoid softplus softshrink hardshrink hardtanh leaky_relu gelu")
    unary(table, "abs neg sign square relu exp", integers="i")
    unary(table, "rsqrt log log10 log2 log1p lgamma digamma", "=pos")
    unary(table, "sqrt", "=pos", integers="i")
    unary(table, "asin acos atanh erfinv", "=within")
    unary(table, "acosh", "=ge1")
    unary(table, "logit", "=unit")
    unary(table, "threshold", rest=", 0.1, 20.0")
    unary(table, "round.decimals", rest=", decimals=2", dtypes="", backward="")
    unary(table, "isfinite isinf isnan signbit", backward="", integers="i")
    unary(table, "logical_not", backward="", integers="i b")
    unary(table, "pow.Tensor_Scalar", rest=", 2")
    unary(table, "clamp", rest=", -0.5, 0.5", integers="i")
    unary(table, "clamp_min clamp_max", rest=", 0.0", dtypes="bf")
    unary(table, "add.Scalar mul.Scalar", rest=", 2", dtypes="bf", integers="i")
    unary(table, "div.Scalar", rest=", 3", dtypes="bf", integers="i")
    unary(table, "sub.Scalar rsub.Scalar", rest=", 3", dtypes="")
    unary(table, "fmod.Scalar remainder.Scalar", rest=", 3", dtypes="bf", integers="i", backward="")
    binary(table, "add.Tensor mul.Tensor", integers="i b u8")
    binary(table, "sub.Tensor maximum minimum")
    binary(table, "rsub.Tensor fmax fmin clamp_min.Tensor clamp_max.Tensor copysign.Tensor", integers="")
    binary(table, "atan2 hypot logaddexp logaddexp2", integers="")
    binary(table, "max.other min.other heaviside", backward="", integers="")
    binary(table, "div.Tensor remainder.Tensor fmod.Tensor", b="=pos", divisor="=int:1:50")
    binary(table, "floor_divide", b="=pos", divisor="=int:1:50", backward="")
    binary(table, "true_divide.Tensor", b="=pos", backward="", integers="")
    binary(table, "xlogy.Tensor", b="=pos", integers="")
    binary(table, "pow.Tensor_Tensor", a="=pos", divisor="=int:0:5")
    binary(table, "float_power.Tensor_Tensor", a="=pos", integers="")
    binary(table, "nextafter", backward="", dtypes="bf", integers="")
    binary(table, "ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor isclose", backward="")
    binary(table, "eq.Tensor logical_and", backward="", integers="i b")
    binary(table, "logical_or logical_xor", backward="", integers="b")


def reductions(table):
    reduction(table, "sum.dim_IntList", MOST, "bf d i b")
    reduction(table, "mean.dim var.correction", MOST, "bf d")
    reduction(table, "nansum std.correction var_mean.correction logsumexp", MOST, "bf")
    reduction(table, "amax", MOST, "bf d i")
    reduction(table, "amin std_mean.correction", MOST)
    reduction(table, "max.dim", MOST, "bf d i", dim="{}")
    reduction(table, "min.dim", MOST, "bf", dim="{}")
    reduction(table, "argmax", dtypes="bf d i", dim="{}")
    reduction(table, "argmin", dim="{}")
    reduction(table, "aminmax", "first last", dim="dim={}")
    reduction(table, "prod.dim_int", "first last tiny", dim="{}")
    reduction(table, "count_nonzero.dim_IntList", dtypes="i b")
    for operator, fill in (("all", "=ones"), ("any", "=zeros")):
        reduction(table, f"{operator}.dim", dim="{}", fill=fill)
        reduction(table, f"{operator}.dim", dim="{}", fill=fill, base="b", suffix="_bool")
        reduction(table, f"{operator}.dims", fill=fill, base="b")
    for order in (2, 1, 3.5, 0):
        for tag in ("first", "last", "middle", "nhw", "tiny", "t_last"):
            shape, layout, dims = REDUCED[tag]
            plus = "+" if tag in ("first", "last", "tiny") else ""
            table.rule("linalg_vector_norm", f"p{order}_{tag}{plus} f[{shape}]{layout}, {order}, [{dims}]")
        table.rule("linalg_vector_norm", f"p{order}_all+ f[big], {order}")
    whole(table, "sum", dtypes="bf d i b c")
    whole(table, "mean", dtypes="bf d")
    whole(table, "max")
    whole(table, "argmax", backward="")
    whole(table, "min var std", dtypes="bf")
    whole(table, "var_mean std_mean", dtypes="")
    whole(table, "prod", dtypes="i")
    some = "first last middle narrow tiny mid t_last t_first".split()
    reduction(table, "softmax.int log_softmax.int", " ".join(some), dim="{}", tags=some)
    some = ("first", "last", "middle")
    reduction(table, "softmax.int log_softmax.int", MOST, dim="{}", base="bf", suffix="_bf", tags=some)
    some = "first last middle narrow tall tiny mid t_last".split()
    reduction(table, "cumsum cummax cummin logcumsumexp", "first last tiny", dim="{}", tags=some)
    reduction(table, "cumprod", "first last tiny", dim="{}", fill="=rand:0.99:1.01", tags=some)


def linear_algebra(table):
    for n, batch in ((8, 0), (64, 0), (256, 0), (8, 100), (3, 1000), (2, 1000), (32, 32)):
        tag, rows = f"n{n}_b{batch}" if batch else f"n{n}", f"{batch},{n}" if batch else f"{n}"
        plus = "" if n == 256 else "+"
        matrix, right = f"f[{rows},{n}]", f"f[{rows},4]"
        table.rule("linalg_det linalg_slogdet linalg_inv linalg_lu_factor", f"{tag}{plus} {matrix}=solvable")
        table.rule("linalg_cholesky linalg_eigh", f"{tag}{plus} {matrix}=spd")
        table.rule("linalg_qr linalg_svdvals", f"{tag}{plus} {matrix}")
        table.rule("linalg_svd", f"{tag}{plus} {matrix}, False")
        table.rule("linalg_eigvalsh", f"{tag} {matrix}=spd")
        table.rule("linalg_lu", f"{tag} {matrix}=solvable")
        table.rule("linalg_solve", f"{tag}{plus} {matrix}=solvable, {right}")
        table.rule("linalg_solve_triangular", f"{tag}{plus} {matrix}=triangular, {right}, upper=True")
        table.rule("cholesky_solve", f"{tag} {right}, {matrix}=triangular, True")
        table.rule("linalg_cholesky linalg_eigh", f"{tag}_f64 d[{rows},{n}]=spd")
        table.rule("linalg_solve", f"{tag}_f64 d[{rows},{n}]=solvable, d[{rows},4]")
        table.rule("linalg_inv", f"{tag}_f64 d[{rows},{n}]=solvable")
        if n not in (32, 2, 256):
            table.rule("linalg_matrix_exp", f"{tag}{plus} {matrix}=solvable")
            table.rule("linalg_pinv", f"{tag}{plus} {matrix}, 1e-5")
            table.rule("linalg_eig", f"{tag} {matrix}")


def transforms(table):
    for n in (1024, 1000, 1021, 77, 17, 4096, 12):
        rows, plus = 2**18 // n, "+" if n in (1024, 1000) else ""
        table.rule("fft_fft", f"n{n}{plus} c[{rows},{n}] | n{n}_f64 z[{rows},{n}]")
        table.rule("fft_rfft", f"n{n}{plus} f[{rows},{n}]")
        table.rule("fft_irfft", f"n{n}{plus} c[{rows},{n // 2 + 1}], {n}")
        table.rule("fft_ifft", f"n{n} c[{rows},{n}]")


def casts(table):
    for source in "f bf h d i i32 b u8".split():
        for target in "f bf h d i b u8".split():
            fill = "<2" if source in ("u8", "i32", "i") or target == "u8" else ""
            if source != target:
                pair = f"{DTYPES[source]}_{DTYPES[target]}"
                table.rule("to.dtype", f"{pair} {source}[big]{fill}, {DTYPES[target]}")
    for dtype in "f bf d i b u8 c".split():
        plus, to = "+" if dtype == "f" else "", "memory_format=contiguous_format"
        for layout, shape in (("c", "1024,1024"), ("t", "1024,1024@t"), ("s", "1024,512@s")):
            shape, _, way = shape.partition("@")
            table.rule("clone", f"{DTYPES[dtype]}_{layout}{plus} {dtype}[{shape}]{'@' + way if way else ''}, {to}")


def cases(folder=pathlib.Path(__file__).resolve().parent):
    """All cases, each as the dictionary that both sides understand."""
    table = Table()
    for family in (elementwise, reductions, linear_algebra, transforms, casts):
        family(table)
    for file in ("tensors.rules", "nn.rules"):
        for line in re.sub(r"\n +", " ", (folder / file).read_text()).splitlines():
            if line and not line.startswith("#"):
                table.rule(*line.split(" | ", 1))
    return list(table.cases.values())
