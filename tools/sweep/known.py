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
    (r"aten::(scatter|index)_add.*float16", "^output", "sums of many 16-bit numbers are rounded in another order"),
]


def why_known(case, reason):
    """Why the difference of this case is no mistake, or None."""
    for call, text, why in KNOWN:
        if re.match(call, case["words"]) and re.search(text, reason):
            return why
    return None
