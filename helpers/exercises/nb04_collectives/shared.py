"""What exercises of notebook 04 share: who gets how many of some things, and what gloo says of sizes."""

from __future__ import annotations

from helpers.checks.author import *

ON_ROOT_ONLY = (
    Failed(
        "on non-source ranks",
        "The list of parts is given on rank `src` only; the others give None.",
    ),
    Failed(
        "on non-destination ranks",
        "The list to gather into is given on rank `dst` only; the others give None.",
    ),
)
SIZES = "invalid tensor size|input list|Check failed|ProcessGroupGloo.cpp|tensor list size"
"""What gloo says of tensors or lists of another size than it needs."""


def share(count: int, n: int, rank: int) -> slice:
    """Give what rank `rank` of n gets of `count` things: ⌈count / n⌉ each, the last ones less."""
    each = -(-count // n)
    return slice(rank * each, (rank + 1) * each)
