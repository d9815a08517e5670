"""Follows a world from its start to its end: answered, failed, stuck, or out of time.

Called by the launcher and by `%%ranks`; asks the `Watcher` whether the world is stuck.
"""

from __future__ import annotations

import time

from helpers.ranks.budget import Budget, ranks_of
from helpers.ranks.display import Quiet
from helpers.ranks.failures import Deadlock, RankTimeout
from helpers.ranks.rootcause import failure_of
from helpers.ranks.run import RankFailure
from helpers.ranks.watch import LOOK_S, Watcher, waits_now
from helpers.ranks.world import World
from helpers.trace.events import Event

GRACE_S = 1.0
"""How long the others may go on after a rank has failed, to say what became of them."""
GRACE_MONITORED_S = 3.0
"""While rank 0 still asks the others one by one in monitored_barrier, which then names the missing."""
_LAST_WORDS_S = 0.5
"""How long ranks whose time is up are given to say where they are."""


def follow(world: World, timeout: float, display: Quiet) -> RankFailure | None:
    """Pump a world until its ranks have answered; give the failure if they did not end well."""
    start = time.monotonic()
    budget = Budget(lambda: ranks_of(world), timeout, start)
    watcher = Watcher(world, timeout)
    next_look, give_up = start + LOOK_S, float("inf")
    while True:
        world.pump(max(0.0, min(next_look, give_up) - time.monotonic()))
        now = time.monotonic()
        if all(member.done for member in world.members) or world.server_gone:
            return failure_of(world)
        if not world.setting.others_go_on and _has_failed(world):
            give_up = min(give_up, now + _grace(world))
            if now >= give_up or _others_wait(world):
                return failure_of(world)
        if now < next_look:
            continue
        if budget.is_spent(now):
            world.ask_and_wait(_LAST_WORDS_S)
            return failure_of(world) or RankTimeout(
                timeout, waits_now(watcher).waits, budget.by_the_clock
            )
        diagnosis = watcher.look(now)
        if diagnosis is not None:
            return failure_of(world) or Deadlock(diagnosis)
        next_look = now + watcher.next_s
        display.update(world, watcher, now - start)


def _has_failed(world: World) -> bool:
    return any(member.state in {"failed", "died"} for member in world.members)


def _blocked(world: World) -> list[Event | None]:
    """Give, for each rank that is left, the call that it waits in."""
    world.read_logs()
    return [world.collector.blocked_in(member.rank) for member in world.members if not member.done]


def _grace(world: World) -> float:
    """Return how long after a failure others may take to tell theirs, in seconds."""
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
