"""A cause of a deadlock: a function that recognizes a stuck world, with its name and its priority."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from helpers.trace.events import Diagnosis
from helpers.trace.waits import StuckWorld

Find = Callable[[StuckWorld], Diagnosis | None]
"""Returns a diagnosis if a stuck world has this cause, and None otherwise."""


class Priority(IntEnum):
    """The evidence for a cause, from the most specific to none. Causes with lower numbers are tried first.

    A cause must be tried before all of its consequences. For example, two ranks with different tags also wait
    for each other, so tags are tried before cycles. Causes of the same priority are not consequences of each
    other. If a world has two such causes, either of them may be reported.
    """

    DIFFERENT_CALLS = 1
    """Two recorded calls of one collective differ."""
    WRONG_LINE = 2
    """A rank waits for an action that no other rank will take, even if the other ranks continue."""
    ENDED_RANK = 3
    """A rank has made its last call, but another rank needs one more call."""
    WRONG_PAIR = 4
    """Two calls look like a pair, but differ. More specific explanations of a cycle belong here, too."""
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
        certain: Whether the cause alone proves that no rank can continue. Without a certain cause, a timeout
            is explained only if the world is known to be hopeless.
    """

    name: str
    priority: Priority
    find: Find
    certain: bool = False


CAUSES: list[Cause] = []
"""All causes, in no particular order. `causes` imports the modules that define them."""


def cause(name: str, priority: Priority, certain: bool = False) -> Callable[[Find], Find]:
    """Register the decorated function as a cause with this name and this priority."""

    def register(find: Find) -> Find:
        CAUSES.append(Cause(name, priority, find, certain))
        return find

    return register
