"""The causes of a deadlock: the first cause that fits a stuck world explains it.

A cause is a function in one of the modules `causes_*`, decorated with `@cause`. Causes are tried by priority.
CONTRIBUTING.md has an example, and lists the tests.
"""

from __future__ import annotations

from collections.abc import Iterator

from helpers.trace import (  # noqa: F401 (these modules define the causes)
    causes_collectives,
    causes_messages,
    causes_missing_calls,
    causes_outside,
    causes_setup,
)
from helpers.trace.cause import CAUSES, Cause, Priority, cause
from helpers.trace.causes_different_calls import describe_different_calls
from helpers.trace.events import Diagnosis
from helpers.trace.mismatch import first_difference
from helpers.trace.waits import StuckWorld


@cause("different calls", Priority.DIFFERENT_CALLS)
def _find_different_calls(world: StuckWorld) -> Diagnosis | None:
    """Find differing calls. If they have finished, also describe the current waits."""
    difference = first_difference(world.trace)
    if difference is None:
        return None
    present = (
        diagnosis
        for found, diagnosis in explanations(world, after=Priority.DIFFERENT_CALLS)
        if found.priority < Priority.UNRECORDED
    )
    return describe_different_calls(difference, world, next(present, None))


@cause("unknown", Priority.UNKNOWN)
def _describe_unknown_cause(world: StuckWorld) -> Diagnosis:
    return world.diagnosis(
        "stuck",
        "All ranks are blocked, and their calls do not show why.",
        "Compare the calls of the ranks: each call must have its counterpart.",
    )


def explanations(
    world: StuckWorld, *, after: int = 0, only_certain: bool = False
) -> Iterator[tuple[Cause, Diagnosis]]:
    """Yield the causes that fit a stuck world, each with its diagnosis, in the order of their priorities.

    Args:
        after: The priority up to which causes are left out.
        only_certain: Whether to leave out causes that are not certain.
    """
    for each in sorted(CAUSES, key=lambda each: each.priority):
        if each.priority > after and (each.certain or not only_certain):
            diagnosis = each.find(world)
            if diagnosis is not None:
                yield each, diagnosis
