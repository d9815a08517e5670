"""Measure a world's time, excluding waits caused by a busy machine.

On a laptop that runs other programs, or with thirty learners on one machine, a rank may spend most of its
time queued for a core. So only a part of each time interval counts:

    max(share of the machine's cores used by the ranks, 1 - share of the interval spent queued)

A world that sleeps, or computes on an idle machine, is charged in full. If other programs occupy the cores, a
world that exchanges messages is charged only for the time that it received. After ten times its budget, every
world is terminated, even if it was hardly charged.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helpers.ranks.process_snapshot import Times, process_times
from helpers.ranks.world import World

# No world may take longer than this many times its budget, however busy the machine is.
MAX_BUDGET_FACTOR = 10
# Limits of the interval between two charges. A charge reads dozens of files for each rank, so it is made only
# after a fortieth of the remaining budget.
_MIN_CHARGE_INTERVAL_S, _MAX_CHARGE_INTERVAL_S = 0.05, 1.0


def rank_pids(world: World) -> list[int]:
    """Return the process ids of the running ranks; empty until all ranks have started.

    Until then the server may still be importing modules for the ranks.
    """
    live = [member for member in world.members if not member.is_done]
    return [member.pid for member in live] if all(member.pid for member in live) else []


class Budget:
    """Time allowed for processes, in seconds on an otherwise idle machine.

    Args:
        roots: A function that returns the current process ids. Their child processes are also counted. While
            the result is empty, nothing is charged.
        seconds: The budget.
        now: The current time of a steady clock, in seconds.
        times: A function that returns the running and queueing times of these processes, which may be on
            other hosts.
        cores: Number of cores that they share; 0 for all cores of this machine.
    """

    def __init__(
        self,
        roots: Callable[[], Sequence[int]],
        seconds: float,
        now: float,
        times: Callable[[Sequence[int]], Mapping[Any, Times]] = process_times,
        cores: int = 0,
    ) -> None:
        self._roots = roots
        self._times_of = times
        self._cores = cores or os.cpu_count() or 1
        self._seconds = self._left = seconds
        self._ran_ns = 0
        self._end = now + seconds * MAX_BUDGET_FACTOR
        self._last = now
        self._times: Mapping[Any, Times] = {}

    @property
    def by_the_clock(self) -> bool:
        """Whether some budget is left. If so, a wait that timed out was ended by the clock's limit."""
        return self._left > 0

    @property
    def was_computing(self) -> bool:
        """Whether the processes together used as much processor time as the whole budget."""
        # An endless loop is charged for exactly its running time. Because the first measurement is taken a
        # moment after the start, allow for a difference of 10 %.
        return self._ran_ns / 1e9 >= 0.9 * self._seconds

    def is_spent(self, now: float) -> bool:
        """Charge the time until `now`; return whether the budget is used up."""
        if self._seconds == math.inf:
            return False
        interval_s = min(max(self._left / 40, _MIN_CHARGE_INTERVAL_S), _MAX_CHARGE_INTERVAL_S)
        if now - self._last < interval_s:
            return self._left <= 0 or now >= self._end
        ran_ns, queued_ns = self._measure_increase()
        elapsed_s, self._last = now - self._last, now
        self._ran_ns += ran_ns
        if self._times:
            used_share = ran_ns / 1e9 / (elapsed_s * self._cores)
            queued_share = queued_ns / 1e9 / elapsed_s
            self._left -= elapsed_s * min(1.0, max(used_share, 1.0 - queued_share))
        return self._left <= 0 or now >= self._end

    def _measure_increase(self) -> tuple[int, int]:
        """Return the ns for which the ranks and their children ran, and were queued, since the last call.

        Even when idle, gloo's threads queue a hundred times a second. So their queueing time counts only up
        to that of the other threads.
        """
        times = self._times_of(self._roots())
        increases = [self._increase_of(pid, now) for pid, now in times.items()]
        self._times = times
        ran_ns, queued_ns, gloo_queued_ns = (
            sum(column) for column in zip((0, 0, 0), *increases, strict=True)
        )
        return ran_ns, queued_ns + min(gloo_queued_ns, queued_ns)

    def _increase_of(self, pid: Any, now: Times) -> list[int]:
        before = self._times.get(pid, (0, 0, 0))
        return [max(0, new - old) for new, old in zip(now, before, strict=True)]
