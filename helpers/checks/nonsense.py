"""What `hard.py` puts where nothing may be read yet, and what to say to whoever has read it."""

from __future__ import annotations

import math
from typing import Any

import torch

_MOST_PARTS = 100
READ_EARLY = (
    "This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous "
    "call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic "
    "made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it."
)


def nonsense_like(x: torch.Tensor) -> torch.Tensor:
    """Give what `hard.py` puts where nothing may be read yet."""
    return torch.full_like(x, torch.nan if x.is_floating_point() else torch.iinfo(x.dtype).max)


def has_nan(got: Any, depth: int = 3) -> bool:
    """Tell whether some number, also of a tensor in lists, tuples and dicts, is NaN."""
    if isinstance(got, (list, tuple, dict)) and depth:
        parts = list(got.values() if isinstance(got, dict) else got)
        return any(has_nan(part, depth - 1) for part in parts[:_MOST_PARTS])
    if isinstance(got, torch.Tensor):
        return bool(got.isnan().any())
    return isinstance(got, float) and math.isnan(got)


def has_nonsense(got: Any, depth: int = 3, small: bool = True) -> bool:
    """Tell whether some element of a tensor, or of one in lists, tuples and dicts, is nonsense.

    small: also of a dtype of eight bits.
    """
    if isinstance(got, (list, tuple, dict)) and depth:
        parts = list(got.values() if isinstance(got, dict) else got)
        return any(has_nonsense(part, depth - 1, small) for part in parts[:_MOST_PARTS])
    if not isinstance(got, torch.Tensor) or got.dtype is torch.bool or got.is_complex():
        return False
    if got.dtype.itemsize == 1 and not small:
        return False
    nonsense = nonsense_like(got)
    return bool(((got == nonsense) | (got.isnan() & nonsense.isnan())).any())
