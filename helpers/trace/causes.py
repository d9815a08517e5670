"""The causes of a deadlock, as a table: the first cause that fits a stuck world explains it.

To add a cause, write a function that returns a diagnosis or None in one of the modules `causes_*`, and add a
row to `CAUSES` with a priority. Causes are tried by priority; their order in the table does not matter.
CONTRIBUTING.md lists the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from helpers.trace.causes_collectives import find_group_order, find_skipped_backward
from helpers.trace.causes_different_calls import describe_different_calls
from helpers.trace.causes_messages import (
    find_cycle,
    find_missing_wait,
    find_tag_mismatch,
    find_wrong_peer,
)
from helpers.trace.causes_missing_calls import find_exited_rank, find_unmatched_call
from helpers.trace.causes_outside import (
    find_blocked_peer,
    find_blocked_ranks,
    find_file_lock,
    find_missing_key,
)
from helpers.trace.causes_setup import (
    find_different_groups,
    find_endless_setup,
    find_exit_before_setup,
    find_local_group,
    find_separate_stores,
    find_wrong_join,
)
from helpers.trace.events import Diagnosis
from helpers.trace.mismatch import first_difference
from helpers.trace.waits import StuckWorld


class Priority(IntEnum):
    """The evidence for a cause, from the most specific to none. Causes with lower numbers are tried first.

    A cause must be tried before all of its consequences. For example, two ranks with different tags also wait
    for each other, so tags are tried before cycles. Causes of the same priority are not consequences of each
    other. If a world has two such causes, either of them explains it, and the first in the table is reported.
    """

    DIFFERENT_CALLS = 1
    """Two recorded calls of one collective differ."""
    WRONG_LINE = 2
    """A rank waits for an action that no other rank will take, even if the other ranks continue."""
    ENDED_RANK = 3
    """A rank has made its last call, but another rank needs one more call."""
    WRONG_PAIR = 4
    """Two calls look like a pair, but differ."""
    CYCLE = 5
    """Ranks wait for each other, although no single call is wrong."""
    BLOCKED_PEER = 6
    """A call waits for a rank that is blocked outside of torch."""
    MISSING_CALL = 7
    """A call waits for a rank that is in a different call."""
    UNRECORDED = 8
    """No recorded call waits for a rank. Only the ranks' positions are known."""
    UNKNOWN = 9
    """There is no evidence."""


@dataclass(frozen=True)
class Cause:
    """A reason why ranks are stuck.

    Attributes:
        name: A short name, used by tests.
        find: A function that returns a diagnosis if a stuck world has this cause, and None otherwise.
        certain: Whether the cause alone proves that no rank can continue. Without a certain cause, a timeout
            is explained only if the world is known to be hopeless.
    """

    name: str
    priority: Priority
    find: Callable[[StuckWorld], Diagnosis | None]
    certain: bool = False


def _find_different_calls(world: StuckWorld) -> Diagnosis | None:
    """Find differing calls. If they have finished, also describe the current waits."""
    difference = first_difference(world.trace)
    if difference is None:
        return None
    present = (
        diagnosis
        for cause, diagnosis in explanations(world, after=Priority.DIFFERENT_CALLS)
        if cause.priority < Priority.UNRECORDED
    )
    return describe_different_calls(difference, world, next(present, None))


def _describe_unknown_cause(world: StuckWorld) -> Diagnosis:
    return world.diagnosis(
        "stuck",
        "All ranks are blocked, and their calls do not show why.",
        "Compare the calls of the ranks: each call must have its counterpart.",
    )


CAUSES = (
    Cause("different calls", Priority.DIFFERENT_CALLS, _find_different_calls),
    Cause("wrong join", Priority.WRONG_LINE, find_wrong_join, certain=True),
    Cause("group order", Priority.WRONG_LINE, find_group_order),
    Cause("skipped backward", Priority.WRONG_LINE, find_skipped_backward),
    Cause("missing wait", Priority.WRONG_LINE, find_missing_wait),
    Cause("missing key", Priority.WRONG_LINE, find_missing_key),
    Cause("file lock", Priority.WRONG_LINE, find_file_lock, certain=True),
    Cause("local group", Priority.WRONG_LINE, find_local_group),
    Cause("different groups", Priority.WRONG_LINE, find_different_groups),
    Cause("exited rank", Priority.ENDED_RANK, find_exited_rank),
    Cause("exit before setup", Priority.ENDED_RANK, find_exit_before_setup),
    Cause("tag mismatch", Priority.WRONG_PAIR, find_tag_mismatch),
    Cause("wrong peer", Priority.WRONG_PAIR, find_wrong_peer),
    Cause("cycle", Priority.CYCLE, find_cycle),
    Cause("blocked peer", Priority.BLOCKED_PEER, find_blocked_peer),
    Cause("unmatched call", Priority.MISSING_CALL, find_unmatched_call),
    Cause("separate stores", Priority.UNRECORDED, find_separate_stores),
    Cause("endless setup", Priority.UNRECORDED, find_endless_setup),
    Cause("blocked ranks", Priority.UNRECORDED, find_blocked_ranks),
    Cause("unknown", Priority.UNKNOWN, _describe_unknown_cause),
)


def explanations(
    world: StuckWorld, *, after: int = 0, only_certain: bool = False
) -> Iterator[tuple[Cause, Diagnosis]]:
    """Yield the causes that fit a stuck world, each with its diagnosis, in the order of their priorities.

    Args:
        after: The priority up to which causes are left out.
        only_certain: Whether to leave out causes that are not certain.
    """
    for cause in sorted(CAUSES, key=lambda cause: cause.priority):
        if cause.priority > after and (cause.certain or not only_certain):
            diagnosis = cause.find(world)
            if diagnosis is not None:
                yield cause, diagnosis
