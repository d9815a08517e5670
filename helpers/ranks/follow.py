"""Follows a world from its start to its end: answered, failed, stuck, or out of time.

Called by the launcher and by `%%ranks`; asks the `Watcher` whether the world is stuck.
"""

from __future__ import annotations

import time

from helpers.ranks.display import Quiet
from helpers.ranks.failures import Deadlock, RankFailure, RankTimeout
from helpers.ranks.rootcause import failure_of
from helpers.ranks.watch import LOOK_S, Watcher, waits_now
from helpers.ranks.world import World
from helpers.trace.events import Event

GRACE_S = 1.0
"""How long the others may go on after a rank has failed, to say what became of them."""
GRACE_MONITORED_S = 3.0
"""While rank 0 still asks the others one by one in monitored_barrier, which then names the missing."""


def follow(world: World, timeout: float, display: Quiet) -> RankFailure | None:
    """Pump a world until its ranks have answered; give the failure if they did not end well."""
    watcher = Watcher(world)
    start = time.monotonic()
    next_look, give_up = start + LOOK_S, float("inf")
    while True:
        now = time.monotonic()
        world.pump(max(0.0, min(next_look, start + timeout) - now))
        now = time.monotonic()
        if all(member.done for member in world.members):
            return failure_of(world)
        if world.server_gone:
            return failure_of(world)
        if any(member.state in {"failed", "died"} for member in world.members):
            give_up = min(give_up, now + _grace(world))
            if now >= give_up or _others_wait(world):
                return failure_of(world)
        if now >= start + timeout:
            return RankTimeout(timeout, waits_now(watcher).waits)
        if now >= next_look:
            next_look = now + LOOK_S
            diagnosis = watcher.look(now)
            if diagnosis is not None:
                return failure_of(world) or Deadlock(diagnosis)
            display.update(world, watcher, now - start)


def _blocked(world: World) -> list[Event | None]:
    """Give, for each rank that is left, the call that it waits in."""
    return [world.collector.blocked_in(member.rank) for member in world.members if not member.done]


def _grace(world: World) -> float:
    """Give how long after a failure others may take to tell theirs, in seconds."""
    return max((GRACE_MONITORED_S for e in _blocked(world) if _is_monitored(e)), default=GRACE_S)


def _others_wait(world: World) -> bool:
    """Tell whether every rank that is left waits in a call, which nobody will answer any more."""
    long_ago = time.monotonic_ns() - 150_000_000
    return all(
        event is not None and event.start_ns < long_ago and not _is_monitored(event)
        for event in _blocked(world)
    )


def _is_monitored(event: Event | None) -> bool:
    return event is not None and event.call == "monitored_barrier"
