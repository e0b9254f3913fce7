"""Differences that are known and reviewed: PyTorch's answer is a quirk, or several answers are right. Whatever is not
in this table is reported as differing."""
import re

# (what the call matches, what the runner's reason matches, why it is no mistake of ours)
KNOWN = [
    (r"aten::sort(?!.*stable=True)", "^output 1: ", "a sort that is not stable orders equal elements in any way"),
    (r"aten::argsort(?!.*stable=True)", "^output 0: ", "a sort that is not stable orders equal elements in any way"),
    (r"aten::trace", "^gradient of ", "PyTorch's gradient of a tall matrix has numbers beside the diagonal"),
    (r"aten::unique_dim.*nan", "^output", "PyTorch compares slices with NaN by what is no order"),
    (r"aten::max_pool", "has no element inside the input", "PyTorch's index of an empty window is outside the input"),
    (r"aten::_?adaptive_\w+_backward", "to have non-zero size", "without outputs, the gradient is zero"),
    (r"aten::fractional_max_pool", "must either be a single Int", "one number in a list stands for all, as alone"),
    (r"aten::log_sigmoid_forward", "^output 1: has shape", "the buffer is a matter of PyTorch's CPU kernel"),
    (r"aten::native_(layer|group)_norm", "^output [12]: has dtype float32", "the statistics are float32, as on CUDA"),
    (r"aten::(native_group|_fused_rms)_norm", "mean and rstd", "PyTorch takes no notice of the statistics' gradients"),
    (r"aten::(hardtanh|relu6|hardshrink|softshrink)", "^gradient of .*, expected 0$",
     "NaN has a gradient in PyTorch's loops without vectors only"),
    (r"aten::(mode|nanmedian|median)", "^output 1: ", "of equal elements it is any"),
    (r"aten::special_(airy|bessel)", "^output", "PyTorch's asymptotic series have seven digits"),
    (r"aten::special_i1", "^gradient of .*got nan", "the derivative at NaN is NaN"),
    (r"aten::copysign", "^gradient of .*expected -?nan", "PyTorch divides the result by the number, also by infinity"),
    (r"aten::(nan)?quantile", "^gradient of", "of equal elements any has the gradient"),
    (r"aten::conv", "Only zero batch or zero channel", "an input without elements is padded, as any other"),
    (r"aten::threshold_backward", "^layout: .*strides", "of inputs in two orders, the output may have either's"),
    (r"aten::(_?linalg|_?fft|nonzero|argwhere|where|unique_dim)", "^layout: .*strides",
     "rows are contiguous, also LAPACK's and FFT's"),
    (r"aten::conj_physical", "^layout: .*shares memory with null", "it is in new memory, also of real numbers"),
    (r"aten::to_sparse", "strided is not a sparse layout", "PyTorch gives the dense tensor back"),
    (r"aten::prod", "^gradient of .*expected nan", "PyTorch divides the product by the element, also by NaN"),
    (r"aten::embedding_bag", "^output 2: has shape", "the sizes of bags that are summed are not computed, or used"),
    (r"aten::nll_loss_forward", "^output 1: .*got 0, ", "an unreduced loss has no use for the weight"),
    (r"aten::take_along_dim", "should be Long but got", "smaller integers are indices, too"),
    (r"aten::(index_fill|index_put|masked_fill)_", "several of its elements share memory", "PyTorch only warns of it"),
    (r"aten::linalg_qr", r"^gradient of .*e\+1\d", "the derivative of a matrix without full rank is rounding"),
    (r"aten::polygamma", "^output", "near its poles PyTorch divides by a sine of few digits"),
    (r"aten::(std|var).*correction=", "^gradient of .*got .*(nan|inf)",
     "where the correction exceeds the elements PyTorch's value and gradient have two divisors"),
    (r"aten::addbmm_", "copy_: output with shape", "PyTorch resizes what it writes in place"),
]


def why_known(case, reason):
    """Why the difference of this case is no mistake, or None."""
    if case.get("imprecise") and reason.startswith("output "):
        return "PyTorch's own answer in 16 bits is as far from float64's"
    for call, text, why in KNOWN:
        if re.match(call, case["words"]) and re.search(text, reason):
            return why
    return None
