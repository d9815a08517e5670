"""A rank's state, as known from outside, for the diagnosis of its world."""

from __future__ import annotations

from dataclasses import dataclass

from helpers.trace.events import Event
from helpers.trace.joins import JoinCall

FINISHED_STATES = frozenset({"returned", "failed", "died"})
GROUP_MAKERS = frozenset({"new_group", "split_group"})
"""Functions of torch that create a process group, and wait for other ranks."""


@dataclass(frozen=True, slots=True)
class RankState:
    """A rank's state, as known from outside.

    Attributes:
        state: "running", "returned", "failed" or "died".
        blocked: The call that it waits for, if any.
        pending: All of its unfinished calls.
        inside: The torch function that its main thread is in; "" if the thread is in the learner's code.
        at: The learner's line.
        keys: The keys of a store that it waits for.
        needs: The ranks needed at its current rendezvous; empty for the whole world.
        named: The members that it has passed for a new group.
        lockers: The holders of a file lock that it waits for.
        others: The names and lines of its other threads that are in the learner's code.
        child: A description of a forked child process's call on one of the rank's groups.
        joins: Its current call of init_process_group.
        meets: Its current rendezvous, such as "new_group", which `inside` may have called.
        handling: The exception that its main thread is handling, if any.
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
    handling: str = ""

    @property
    def ended(self) -> bool:
        return self.state in FINISHED_STATES

    @property
    def makes_group(self) -> bool:
        """Whether it is in new_group, or in a function that calls new_group, such as DeviceMesh."""
        return not self.ended and not GROUP_MAKERS.isdisjoint((self.inside, self.meets))
