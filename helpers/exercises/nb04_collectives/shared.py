"""Each rank's share of some elements, and rules for lists passed only by the root, for notebook 04."""

from __future__ import annotations

from helpers.checks.author import *

ROOT_ONLY_ADVICE = (
    CrashAdvice(
        "on non-source ranks",
        "Only rank `src` passes a list of parts to `scatter`; the others pass None.",
    ),
    CrashAdvice(
        "on non-destination ranks",
        "Only rank `dst` passes a list to gather into; the others pass None.",
    ),
)


def share(count: int, n: int, rank: int) -> slice:
    """Return rank `rank`'s share of `count` elements: ⌈count / n⌉, or the rest for the last ranks."""
    each = -(-count // n)
    return slice(rank * each, (rank + 1) * each)
