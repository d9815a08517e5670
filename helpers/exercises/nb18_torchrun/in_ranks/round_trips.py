"""Run an answer that times pairs of ranks, of which some are slow, with simulated times."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from helpers.checks.stopwatch import Script, Stopwatch

NOISE = 0.05
"""The largest error added to a timing, as a part of its true length."""
WARM_UPS, OUTLIERS = (4.0, 60.0), (30.0, 400.0)
"""Ranges: how many times too long the first timing with a peer is, and now and then another one."""


def run_with_round_trips(
    answer: Callable[..., Any], rank: int, world_size: int, times: Mapping[int, float], seed: int
) -> dict[str, Any]:
    """Call answer(rank, world_size, round_trip); return its result and the number of trips to each peer.

    Each round trip really sends a message and receives the reply. Only the seconds are simulated, because
    a busy machine would make healthy pairs look slow.

    Args:
        times: The true seconds of a round trip to each peer.
        seed: Of the timings' errors.
    """
    trips = dict.fromkeys(times, 0)
    watches = {
        peer: make_watch(seconds, f"{seed}/{rank}/{peer}") for peer, seconds in times.items()
    }

    def round_trip(peer: int) -> float:
        if isinstance(peer, bool) or peer not in watches:
            others = ", ".join(map(str, watches))
            raise ValueError(f"round_trip({peer!r}) on rank {rank}: the other ranks are {others}.")
        peer = int(peer)
        trips[peer] += 1
        ball = torch.zeros(1)
        if rank < peer:
            dist.send(ball, peer)
            dist.recv(ball, peer)
        else:
            dist.recv(ball, peer)
            dist.send(ball, peer)
        return watches[peer]()

    return {"found": answer(rank, world_size, round_trip), "trips": trips}


def make_watch(seconds: float, seed: str) -> Stopwatch:
    """Return a stopwatch for round trips that truly take `seconds`, with errors of its own."""
    rng = random.Random(seed)
    warm_up, outlier = rng.uniform(*WARM_UPS), rng.uniform(*OUTLIERS)
    script = Script(rng.randrange(10**6), NOISE * seconds, warm_up, outlier)
    return Stopwatch(script, lambda: seconds)
