"""Run an answer that times pairs of ranks, some of them slow, with simulated times."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from helpers.checks.stopwatch import Script, Stopwatch

NOISE = 0.02
"""The largest error added to a timing, relative to its true length."""
BETWEEN_OUTLIERS = (5, 7)
"""The number of timings from one that is far too long to the next. So one or two of ten are too long."""
TRIP_TAG = 185
"""Tag that distinguishes round trips from an answer's messages in the record."""
CLOCKS = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns")

Plan = tuple[float, int, float, float, int]
"""The arguments of a pair's stopwatch.

They are the true seconds, a seed, the factors by which the first and other timings are too long, and the
index of the first of these other timings.
"""


def run_with_round_trips(
    answer: Callable[..., Any], rank: int, world_size: int, plans: Mapping[int, Plan]
) -> dict[str, Any]:
    """Call answer(rank, world_size, round_trip); return its result and whether it read a clock.

    Each round trip actually sends a message and receives the reply. Only the seconds are simulated, because a
    busy machine would make healthy pairs look slow. Both ranks of a pair get the same seconds.
    """
    watches = {peer: make_watch(*plan) for peer, plan in plans.items()}

    def round_trip(peer: int) -> float:
        if isinstance(peer, bool) or peer not in watches:
            others = ", ".join(map(str, watches))
            raise ValueError(f"round_trip({peer!r}) on rank {rank}: the other ranks are {others}.")
        peer = int(peer)
        ball = torch.zeros(1)
        if rank < peer:
            dist.send(ball, peer, tag=TRIP_TAG)
            dist.recv(ball, peer, tag=TRIP_TAG)
        else:
            dist.recv(ball, peer, tag=TRIP_TAG)
            dist.send(ball, peer, tag=TRIP_TAG)
        return watches[peer]()

    with record_clocks() as clocks:
        found = answer(rank, world_size, round_trip)
    return {"found": found, "clock": bool(clocks)}


def make_watch(
    seconds: float, seed: int, warm_up: float, outlier: float, first_outlier: int
) -> Stopwatch:
    """Return a stopwatch for round trips of a pair."""
    script = Script(
        seed,
        NOISE * seconds,
        warm_up,
        outlier,
        first_outlier=(first_outlier, first_outlier),
        between_outliers=BETWEEN_OUTLIERS,
    )
    return Stopwatch(script, lambda: seconds)


@contextmanager
def record_clocks() -> Iterator[list[str]]:
    """Record the names of the clocks read in the answer's lines."""
    names: list[str] = []
    clocks = {name: getattr(time, name) for name in CLOCKS}

    def recording(name: str) -> Callable[[], Any]:
        def read() -> Any:
            if sys._getframe(1).f_globals.get("__name__") == "__main__":
                names.append(name)
            return clocks[name]()

        return read

    for name in CLOCKS:
        setattr(time, name, recording(name))
    try:
        yield names
    finally:
        for name, clock in clocks.items():
            setattr(time, name, clock)
