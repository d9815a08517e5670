"""What `hard.py` puts where nothing may be read yet, and what to say to whoever has read it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

_MOST_PARTS = 100
_MOST_TIMES = 1000
_WIDE = frozenset({torch.int32, torch.int64})
READ_EARLY = (
    "This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous "
    "call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic "
    "made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it."
)


LOWER = 1_000_003
"""By how much less stands there in a second run: a prime that no two numbers of an exercise differ by."""
MOVES = (
    "These numbers change with what the check puts into a tensor of torch.empty, and into one that an irecv "
    "or an asynchronous call writes to until wait() has returned. So something was read before wait(), or "
    "nothing was ever received into it."
)


def nonsense_of(dtype: torch.dtype, lower: int = 0) -> float | int:
    """Give what `hard.py` puts where nothing may be read yet. lower: whole numbers are so much less."""
    if dtype.is_floating_point or dtype.is_complex:
        return math.nan
    return torch.iinfo(dtype).max - lower * (dtype in _WIDE)


def nonsense_like(x: torch.Tensor) -> torch.Tensor:
    """Give a tensor of the size of x that is full of it."""
    return torch.full_like(x, nonsense_of(x.dtype))


def moves(one: Any, other: Any) -> bool:
    """Tell whether whole numbers of two runs differ as what stood where nothing may be read yet.

    A sum with NaN is NaN, but one with the largest whole number goes over, into any number. Where the second
    run had `LOWER` less there, the two differ by a small multiple of it. What stood there itself does not
    count: a result may hold it where nobody looks.
    """
    return any(_moved(a, b) for a, b in zip(_leaves(one), _leaves(other), strict=False))


def _moved(one: Any, other: Any) -> bool:
    if not (has_wide(one) and has_wide(other)):
        return False
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    apart = (one - other)[(one != other) & (one != nonsense_like(one))]
    small = apart.abs() <= _MOST_TIMES * LOWER
    return bool(len(apart) and (small & (apart % LOWER == 0)).all())


def has_wide(got: Any) -> bool:
    """Tell whether some tensor, also one in lists, tuples and dicts, holds whole numbers that can move."""
    return any(isinstance(x, torch.Tensor) and x.dtype in _WIDE for x in _leaves(got))


def has_nan(got: Any) -> bool:
    """Tell whether some number, also of a tensor in lists, tuples and dicts, is NaN."""
    return any(
        bool(x.isnan().any()) if isinstance(x, torch.Tensor) else x != x
        for x in _leaves(got)
        if isinstance(x, (torch.Tensor, float))
    )


def has_nonsense(got: Any, small: bool = True) -> bool:
    """Tell whether some element of a tensor, or of one in lists, tuples and dicts, is nonsense.

    small: also of a dtype of eight bits.
    """
    return any(_holds_nonsense(x, small) for x in _leaves(got) if isinstance(x, torch.Tensor))


def _holds_nonsense(got: torch.Tensor, small: bool) -> bool:
    if got.dtype is torch.bool or got.is_complex():
        return False
    if got.dtype.itemsize == 1 and not small:
        return False
    nonsense = nonsense_like(got)
    return bool(((got == nonsense) | (got.isnan() & nonsense.isnan())).any())


def _leaves(got: Any, depth: int = 3) -> Iterator[Any]:
    """Give what lists, tuples and dicts hold, the first hundred of each."""
    if isinstance(got, (list, tuple, dict)) and depth:
        parts = list(got.values() if isinstance(got, dict) else got)
        for part in parts[:_MOST_PARTS]:
            yield from _leaves(part, depth - 1)
    else:
        yield got
