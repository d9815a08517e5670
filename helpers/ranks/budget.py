"""How much time a world has had: time that a busy machine kept from its ranks does not count.

On a laptop that does other things as well, or with thirty learners on one machine, a rank may wait in the
queue for a core most of the time. Of each stretch of time there counts

    max(the share of the machine's cores that the ranks used, 1 - the share in which they queued)

so a world that sleeps pays in full, one that computes on an idle machine pays in full, one that exchanges
messages while others hold the cores pays for what it got. After ten times its budget it has to end anyway.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helpers.ranks.observed import Times, times_of_all
from helpers.ranks.world import World

# No world may take longer than this many times its budget, however busy the machine is.
BACKSTOP = 10
_EVERY_S = 0.05


def ranks_of(world: World) -> list[int]:
    """Return the ranks that are left of a world; none before all are there.

    Until then the server may be importing what they need.
    """
    live = [member for member in world.members if not member.done]
    return [member.pid for member in live] if all(member.pid for member in live) else []


class Budget:
    """The time that processes may take, in seconds of a machine that is their own.

    roots: gives those that are there now; nothing is paid while there are none. What they started counts
    with them. times: gives their times; they may be on other hosts. cores: how many there are for them.
    """

    def __init__(
        self,
        roots: Callable[[], Sequence[int]],
        seconds: float,
        now: float,
        times: Callable[[Sequence[int]], Mapping[Any, Times]] = times_of_all,
        cores: int = 0,
    ) -> None:
        self._roots = roots
        self._times_of = times
        self._cores = cores or os.cpu_count() or 1
        self._seconds = self._left = seconds
        self._ran_ns = 0
        self._end = now + seconds * BACKSTOP
        self._last = now
        self._times: Mapping[Any, Times] = {}

    @property
    def by_the_clock(self) -> bool:
        """Whether there is time left: then it is the backstop that ended the wait."""
        return self._left > 0

    @property
    def was_computing(self) -> bool:
        """Whether the processes have run for the whole budget, all together, in processor time."""
        # A loop that never ends runs as long as the budget, which counts the time that it runs. The first
        # look comes a moment after the start.
        return self._ran_ns / 1e9 >= 0.9 * self._seconds

    def is_spent(self, now: float) -> bool:
        """Take the time until `now` off the budget; tell whether nothing is left of it."""
        if now - self._last < _EVERY_S:
            return self._left <= 0 or now >= self._end
        ran, queued = self._grown()
        stretch, self._last = now - self._last, now
        self._ran_ns += ran
        if self._times:
            used = ran / 1e9 / (stretch * self._cores)
            waited = queued / 1e9 / stretch
            self._left -= stretch * min(1.0, max(used, 1.0 - waited))
        return self._left <= 0 or now >= self._end

    def _grown(self) -> tuple[int, int]:
        """Return how much the ranks, and what they started, have run and have queued since the last call.

        Gloo's own threads are in the queue even while nobody needs them, a hundred times a second: that
        counts as far as other threads wanted the processor too.
        """
        times = self._times_of(self._roots())
        grown = [self._since(pid, now) for pid, now in times.items()]
        self._times = times
        ran, queued, in_gloo = (sum(column) for column in zip((0, 0, 0), *grown, strict=True))
        return ran, queued + min(in_gloo, queued)

    def _since(self, pid: Any, now: Times) -> list[int]:
        before = self._times.get(pid, (0, 0, 0))
        return [max(0, new - old) for new, old in zip(now, before, strict=True)]
