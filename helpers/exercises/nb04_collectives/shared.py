"""What exercises of notebook 04 share: how much each rank gets, and lists that only the root passes."""

from __future__ import annotations

from helpers.checks.author import *

ON_ROOT_ONLY = (
    Failed(
        "on non-source ranks",
        "Only rank `src` passes a list of parts to `scatter`; the others pass None.",
    ),
    Failed(
        "on non-destination ranks",
        "Only rank `dst` passes a list to gather into; the others pass None.",
    ),
)


def share(count: int, n: int, rank: int) -> slice:
    """Return what rank `rank` of n gets of `count` things: ⌈count / n⌉ each, the last ones less."""
    each = -(-count // n)
    return slice(rank * each, (rank + 1) * each)
