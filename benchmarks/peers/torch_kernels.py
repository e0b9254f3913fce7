"""PyTorch's side of benchmarks/kernels.cpp, fft.cpp, cuda/kernels.cpp, cuda/semi_structured.cpp, cuda/conv.cpp and
cuda/dispatch.cpp."""
import contextlib

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from torch_timing import on_device, on_host, workload

DTYPES = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@contextlib.contextmanager
def tf32(allowed):
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


# ---- the CPU


@workload(r"kernels/matmul/(\d+)")
def cpu_matmul(n):
    a, b = torch.randn(int(n), int(n)), torch.randn(int(n), int(n))
    return lambda: on_host(lambda: torch.mm(a, b))


@workload(r"kernels/(add|exp|gelu|softmax|layer_norm|sum)")
def cpu_kernel(name):
    x, y = torch.randn(4096, 4096), torch.randn(4096, 4096)
    run = {
        "add": lambda: x + y,
        "exp": lambda: x.exp(),
        "gelu": lambda: F.gelu(x),
        "softmax": lambda: F.softmax(x, -1),
        "layer_norm": lambda: F.layer_norm(x, (4096,)),
        "sum": lambda: x.sum(),
    }[name]
    return lambda: on_host(run)


@workload(r"fft/(cpu|cuda)/(c2c_2\^20|c2c_2\^24|c2c_prime|r2c_4096x1024)")
def transform(device, name):
    sizes = {"c2c_2^20": (1 << 20,), "c2c_2^24": (1 << 24,), "c2c_prime": (1000003,), "r2c_4096x1024": (4096, 1024)}[name]
    is_real = name.startswith("r2c")
    x = torch.randn(sizes, dtype=torch.float32 if is_real else torch.complex64, device=device)
    run = torch.fft.rfft if is_real else torch.fft.fft
    return lambda: on_host(lambda: run(x), device, calls=10 if device == "cuda" else 1)


# ---- CUDA


@workload(
    r"cuda/(copy|add|add_row|gelu|softmax|layer_norm|sum_all|sum_dim0|sum_dim1|transpose_copy|dropout|randn)/(\w+)"
)
def cuda_kernel(name, dtype):
    rows, columns = 16384, 8192
    x = torch.randn(rows, columns, device="cuda", dtype=DTYPES[dtype])
    row = torch.randn(columns, device="cuda", dtype=DTYPES[dtype])
    out = torch.empty_like(x)
    run = {
        "copy": lambda: out.copy_(x),
        "add": lambda: x + out,
        "add_row": lambda: x + row,
        "gelu": lambda: F.gelu(x),
        "softmax": lambda: F.softmax(x, -1),
        "layer_norm": lambda: F.layer_norm(x, (columns,), row, row),
        "sum_all": lambda: x.sum(),
        "sum_dim0": lambda: x.sum(0),
        "sum_dim1": lambda: x.sum(1),
        "transpose_copy": lambda: x.t().contiguous(),
        "dropout": lambda: F.dropout(x, 0.1),
        "randn": lambda: out.normal_(),
    }[name]
    return lambda: on_device(run, iterations=30)


@workload(r"cuda/matmul(\d+)/(\w+)")
def cuda_matmul(n, dtype):
    a, b = (torch.randn(int(n), int(n), device="cuda", dtype=DTYPES[dtype]) for _ in range(2))

    def measure():
        with tf32(dtype == "tf32"):
            return on_device(lambda: torch.mm(a, b), iterations=20)

    return measure


@workload(r"cuda_semi_structured/(linear|dense)(\d+)/(\w+)")
def semi_structured_linear(kind, n, dtype):
    n, options = int(n), {"dtype": DTYPES[dtype], "device": "cuda"}
    x, bias = torch.randn(n, n, **options), torch.randn(n, **options)
    weight = torch.randn(n, n, **options) * torch.tensor([1, 0, 0, 1], **options).repeat(n // 4)
    if kind == "dense":
        return lambda: on_device(lambda: F.linear(x, weight, bias), iterations=10, calls=10)
    packed = torch._cslt_compress(weight)
    return lambda: on_device(
        lambda: torch._cslt_sparse_mm(packed, x.t(), bias, transpose_result=True), iterations=10, calls=10
    )


BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
ATTENTIONS = {1024: (16, 12, 64), 4096: (4, 16, 128)}  # batch, heads, width


@workload(r"cuda/attention(\d+)/(cudnn|efficient|math|default)/(\w+?)(/dropout)?/(forward|both)")
def attention(length, backend, dtype, dropout, direction):
    length = int(length)
    batch, heads, width = ATTENTIONS[length]
    backward = direction == "both"
    packed = torch.randn(batch, length, 3, heads, width, dtype=DTYPES[dtype], device="cuda")
    q, k, v = (packed.select(2, i).transpose(1, 2).detach().requires_grad_(backward) for i in range(3))
    grad = torch.randn(batch, length, heads, width, dtype=DTYPES[dtype], device="cuda").transpose(1, 2)

    def run():
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if dropout else 0.0, is_causal=True)
        if backward:
            torch.autograd.grad(out, (q, k, v), grad)

    def measure():
        with contextlib.nullcontext() if backend == "default" else sdpa_kernel(BACKENDS[backend]):
            return on_device(run, iterations=20)

    return measure


GRADIENTS = {"input_gradient": [True, False, False], "weight_gradient": [False, True, False]}


@workload(r"cuda_conv/(\d+)x(\d+)_(\d+)_k(\d+)s(\d+)/(\w+)/(\w+)/(nhwc|nchw)")
def convolution(channels, size, outputs, kernel, stride, direction, dtype, layout):
    channels, size, outputs, kernel, stride = (int(each) for each in (channels, size, outputs, kernel, stride))
    layout = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    options = {"dtype": DTYPES[dtype], "device": "cuda"}
    x = torch.randn(64, channels, size, size, **options).contiguous(memory_format=layout)
    w = torch.randn(outputs, channels, kernel, kernel, **options).contiguous(memory_format=layout)
    geometry = ([stride] * 2, [kernel // 2] * 2, [1, 1], False, [0, 0], 1)

    def forward():
        return torch.ops.aten.convolution(x, w, None, *geometry)

    def measure():
        torch.backends.cudnn.benchmark = torch.backends.cudnn.allow_tf32 = True
        with torch.no_grad():
            y = forward()
            if direction == "forward":
                return on_device(forward, iterations=10, calls=10)
            mask = GRADIENTS[direction]
            backward = torch.ops.aten.convolution_backward
            return on_device(lambda: backward(y, x, w, None, *geometry, mask), iterations=10, calls=10)

    return measure
