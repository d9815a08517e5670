"""Compare Monarch (extra `monarch`) with `launch` and `%%ranks`: make a world of 4, and add up numbers."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from helpers.jobs.ports import free_port
from helpers.ranks.launcher import connect, launch
from tests.benchmarks.cells import live_cells
from tests.benchmarks.programs import one_all_reduce
from tests.benchmarks.timing import Figure, median, seconds_of, spread

RANKS, STARTS, CALLS = 4, 3, 60


def compare_with_monarch() -> list[Figure]:
    """Measure a new world up to its first sum, and a sum in an existing world."""
    if not find_spec("monarch"):
        return [Figure("compared with Monarch", "not installed: pip install torchmonarch")]
    connect().preload()
    ours, theirs = [], []
    for _ in range(STARTS):
        ours.append(seconds_of(lambda: launch(one_all_reduce, RANKS)))
        theirs.append(start_monarch())
    started = Figure(
        f"launch, {RANKS} ranks",
        spread(ours),
        f"Monarch, {RANKS} processes to the first sum {spread(theirs)}",
        f"Monarch takes {median(theirs) / median(ours):.1f}x as long",
    )
    live, calls = live_cells(), monarch_calls()
    called = Figure(
        f"live %%ranks cell, {RANKS} ranks",
        spread(live),
        f"Monarch, a call of an endpoint on {RANKS} actors {spread(calls)}",
        f"Monarch takes {median(calls) / median(live):.1f}x as long",
    )
    return [started, called]


def start_monarch() -> float:
    """Return the seconds from a world's start to its first sum, without its shutdown."""
    start = perf_counter()
    with _adders() as adders:
        adders.add.call().get()
        return perf_counter() - start  # The time does not include the end of the processes.


def monarch_calls() -> list[float]:
    """Return the seconds of each sum except the first ten, in an existing world."""
    times = []
    with _adders() as adders:
        for _ in range(CALLS):
            start = perf_counter()
            adders.add.call().get()
            times.append(perf_counter() - start)
    return times[10:]


@contextmanager
def _adders() -> Iterator[Any]:
    actor: Any = importlib.import_module("monarch.actor")
    # the new processes import the actors' class, and join a separate group
    os.environ |= {"PYTHONPATH": str(Path.cwd()), "MASTER_ADDR": "127.0.0.1"}
    os.environ["MASTER_PORT"] = str(free_port())
    mesh = actor.this_host().spawn_procs(per_host={"ranks": RANKS})
    adder = importlib.import_module("tests.benchmarks.monarch_actors").Adder
    yield mesh.spawn("adders", adder, RANKS)
    mesh.stop().get()
