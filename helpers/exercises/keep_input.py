"""The programme of exercises whose docstring says that the first input must not be changed.

An answer that leaves it alone gives back what it returned; one that does not gives back a dict that
says so, which equals no expected value, and which `look_at_input` explains.
"""

from __future__ import annotations

from typing import Any

from helpers.exercises.model import Case
from helpers.ranks.run import Run

RETURNED, AFTERWARDS = "returned", "x afterwards"


def keep_input(answer: Any, rank: int, world_size: int, x: Any, *more: Any) -> Any:
    """Call the answer on a rank; `x` is a tensor, compared afterwards with what it was."""
    before = x.clone()
    returned = answer(rank, world_size, x, *more)
    if x.shape == before.shape and x.dtype == before.dtype and x.equal(before):
        return returned
    return {RETURNED: returned, AFTERWARDS: x}


def look_at_input(case: Case, run: Run) -> str:
    """Give "" or the advice for an answer that changed its input."""
    for rank, value in enumerate(run.values):
        if isinstance(value, dict) and AFTERWARDS in value:
            return (
                f"Rank {rank} changed the tensor `x` that it was given; the caller still needs it. "
                "Begin with `total = x.clone()` and work on `total`."
            )
    return ""
