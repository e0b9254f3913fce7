"""Differences that are known and reviewed: PyTorch's answer is a quirk, or several answers are right. Whatever is not
in this table is reported as differing."""
import re

# (the overload, the reason that the runner gives or the call in words, why it is no mistake of ours)
KNOWN = []


def why_known(case, reason):
    """Why the difference of this case is no mistake, or None."""
    for overload, text, why in KNOWN:
        if re.fullmatch(overload, case["overload"]) and (re.search(text, reason) or re.search(text, case["words"])):
            return why
    return None
