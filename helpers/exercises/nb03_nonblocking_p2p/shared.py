"""What exercises of notebook 03 share: their rules, and what may be said of every one of them."""

from __future__ import annotations

from typing import Any

import torch

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor, NothingBlocks
from helpers.ranks.failures import Deadlock
from helpers.ranks.run import Run

SIZES = (2, 3, 4, 5, 6, 7, 8)
TRANSFERS = (OnlyCalls(("send", "recv")), NothingBlocks(), EachIsWaitedFor())


def nonsense_like(x: torch.Tensor) -> torch.Tensor:
    """Give what `hard.py` puts where nothing may be read yet."""
    return torch.full_like(x, torch.nan if x.is_floating_point() else torch.iinfo(x.dtype).max)


def has_nonsense(got: Any, rank: int) -> bool:
    """Tell whether some element is nonsense."""
    if not isinstance(got, torch.Tensor) or got.dtype is torch.bool or got.is_complex():
        return False
    nonsense = nonsense_like(got)
    return bool(((got == nonsense) | (got.isnan() & nonsense.isnan())).any())


READ_EARLY = Mistake(
    has_nonsense,
    "This is what the check puts into a tensor of torch.empty, and into one that an irecv writes to until "
    "wait() has returned: NaN, or the largest whole number. It was read before wait(), or nothing was ever "
    "received into it.",
)


def _in_a_circle(case: Case, run: Run) -> bool:
    return isinstance(run.failure, Deadlock) and run.failure.diagnosis.kind == "cycle"


FAILED = (
    Failed(
        "was changed before wait",
        "Between issue and wait() a tensor belongs to its transfer: nothing may write to one that is sent, "
        "no irecv either. Receive into a tensor of its own, such as torch.empty_like(x).",
    ),
    Failed(
        ".",
        "With isend and irecv no rank has to receive first, as they return at once: issue all transfers, "
        "and only then wait for the first of them.",
        when=_in_a_circle,
    ),
)
