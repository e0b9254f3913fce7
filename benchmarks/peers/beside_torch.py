"""What programs that compare with PyTorch share."""
import subprocess


class Failure(Exception):
    """Ends the program with its text as one line."""


def as_time(seconds):
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def require_torch(python):
    try:
        found = subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0
    except OSError:
        found = False
    if not found:
        raise Failure(f"there is no PyTorch for {python}: name a Python that has it with --peer-python or RUSH_PEER_PYTHON")
