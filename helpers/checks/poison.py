"""The poison values that `hard.py` puts where nothing may be read yet, and what to say if they were read."""

from __future__ import annotations

import math

import torch

_SECOND = -1234.0
"""A number that float16 and bfloat16 can hold about as well."""
MOVES = (
    "Until wait() has returned, the check fills the tensors that an irecv or an asynchronous call writes to "
    "with poison values, and new tensors of torch.empty, too. Your numbers change with those values: "
    "something was read before wait(), or nothing was ever received into it."
)


def poison_of(dtype: torch.dtype, second: bool = False) -> float | int:
    """Return NaN, or the largest whole number. second: another value, to see what depends on it."""
    if dtype.is_floating_point or dtype.is_complex:
        return _SECOND if second else math.nan
    return torch.iinfo(dtype).max - second
