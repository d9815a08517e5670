"""What is known of a rank from outside, when a world is diagnosed."""

from __future__ import annotations

from dataclasses import dataclass

from helpers.trace.events import Event
from helpers.trace.joins import JoinCall

FINISHED_STATES = frozenset({"returned", "failed", "died"})
GROUP_MAKERS = frozenset({"new_group", "split_group"})
"""Functions of torch that make a process group, and wait for other ranks meanwhile."""


@dataclass(frozen=True, slots=True)
class RankState:
    """What is known of a rank from outside.

    Attributes:
        state: "running", "returned", "failed" or "died".
        blocked: The call that it waits for, if any.
        pending: All its unfinished calls.
        inside: The torch function that its main thread is in; "" if that is in the learner's own code.
        at: The learner's line.
        keys: The keys of a store that it waits for.
        needs: The ranks that must come to the rendezvous that it is in; empty for the whole world.
        named: The members that it passes for a new group.
        lockers: The ranks that hold a file lock that it waits for.
        others: Name and line of its other threads that are in the learner's code.
        child: A description of the call that a forked child process makes on one of the rank's groups.
        joins: Its current call of init_process_group.
        meets: The rendezvous that it is in, which `inside` may have called, such as "new_group".
    """

    rank: int
    state: str
    blocked: Event | None = None
    pending: tuple[Event, ...] = ()
    inside: str = ""
    at: str = ""
    keys: tuple[str, ...] = ()
    needs: tuple[int, ...] = ()
    named: tuple[int, ...] = ()
    lockers: tuple[int, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    child: str = ""
    joins: JoinCall | None = None
    meets: str = ""

    @property
    def ended(self) -> bool:
        return self.state in FINISHED_STATES

    @property
    def makes_group(self) -> bool:
        """Whether it is in new_group, or in a function such as DeviceMesh that calls it."""
        return not self.ended and not GROUP_MAKERS.isdisjoint((self.inside, self.meets))
