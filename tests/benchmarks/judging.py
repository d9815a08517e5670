"""Measure the judge's cost per byte of the most expensive values, and its cost at the limits of a sandbox."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import torch

from helpers.checks.execution import Execution
from helpers.checks.exercise import Exercise
from helpers.checks.judge import judge
from helpers.checks.registry import exercises
from helpers.grading.sandbox.limits import Limits
from helpers.ranks import wire
from helpers.ranks.run import Run
from helpers.trace.events import Trace
from tests.benchmarks.timing import Figure

EXERCISES = ("broadcast_from", "gather_in_order")


def largest_values() -> Iterator[Figure]:
    """Judge values that are cheap to send and as large as allowed, from all ranks of a world."""
    plain = _cost(exercises()["broadcast_from"], torch.zeros(Limits.result_bytes // 4 - 100))
    costs = [
        (*_cost(exercises()[name], value), what)
        for name in EXERCISES
        for what, value in _values().items()
    ]
    sent, seconds, memory, what = max(costs, key=lambda cost: cost[1])
    yield Figure(
        "judging the most expensive value, from every rank, at the caps",
        f"{seconds:.2f} s for {sent / 1e6:.1f} MB: {what}",
        f"a tensor of {plain[0] / 1e6:.0f} MB {plain[1]:.2f} s",
        f"{seconds / sent / (plain[1] / plain[0]):.0f}x a byte",
    )
    sent, seconds, memory, what = max(costs, key=lambda cost: cost[2] / cost[0])
    yield Figure(
        "memory of the judge for a byte sent, at most",
        f"{memory / sent:.0f} bytes: {what}",
        f"a tensor {plain[2] / plain[0]:.1f}",
        f"{max(cost[2] for cost in costs) / 2**20:.0f} MB, the most of any",
    )


def _values() -> dict[str, Any]:
    """Return values with the maximum number of parts."""
    most = Limits.result_parts - 100
    return {
        "a dict of numbers": {k: k for k in range(most // 4)},
        "a dict of texts": {f"{k:0>40}": "" for k in range(most // 4)},
        "a list of numbers": list(range(most)),
        "lists in a list": [[] for _ in range(most // 4)],
        "a set": set(range(most)),
        "small tensors": [torch.zeros(1) for _ in range(most // 8)],
        "empty tensors of many dimensions": [torch.zeros((0,) * 60) for _ in range(most // 68)],
        "complex numbers": [1j] * (most // 4),
        "wide numbers": [1 << 20_000] * 200,
    }


def _cost(exercise: Exercise, value: Any) -> tuple[int, float, int]:
    """Return the bytes sent, the processor time and the memory of decoding and judging them."""
    case = max(exercise.draw(), key=lambda case: case.world_size)
    body = b"".join(bytes(chunk) for chunk in wire.encode(value))
    timed = [_time_judging(exercise, case, body, measured) for measured in (False, True)]
    return len(body) * case.world_size, timed[0][0], timed[1][1]


def _time_judging(exercise: Exercise, case: Any, body: bytes, measured: bool) -> tuple[float, int]:
    ranks = case.world_size
    bodies = [bytearray(body) for _ in range(ranks)]
    if measured:
        tracemalloc.start()
    began = time.process_time()
    values = [wire.decode(each, Limits.result_parts) for each in bodies]
    run = Run(ranks, values, [""] * ranks, Trace(ranks), None, "gloo", 0.0, (), None)
    tried = Execution(case, run)
    judge(exercise, tried, [tried])
    seconds = time.process_time() - began
    memory = tracemalloc.get_traced_memory()[1] if measured else 0
    tracemalloc.stop()
    return seconds, memory
