"""Scripted laps for `measure_gil`, `strong_scaling` and `weak_scaling`. Runs in ranks.

Their answers are ratios of times. A stopwatch whose first laps are all six times too slow would
hide in a ratio, so here each tuple of arguments has a warm-up and outliers of its own size.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from helpers.checks.stopwatch import Script, Stopwatch

NOISE = 0.04
"""What is added to a lap at most, as a part of its true length."""


def gil_seconds(plan: Mapping[str, Any], threads: int) -> float:
    """Give the true seconds of so many pieces of work, each in a thread of its own."""
    held: float = plan["held"]
    seconds: float = plan["seconds"] * (1 - held + held * threads)
    return seconds


def step_seconds(plan: Mapping[str, Any], ranks: int, samples: int) -> float:
    """Give the true seconds of a step with `samples` on each rank."""
    communication = plan["communication"] * (ranks - 1) / ranks
    seconds: float = plan["fixed"] + plan["sample"] * samples + communication
    return seconds


def with_scripted_threads(answer: Any, rank: int, world_size: int, plan: Mapping[str, Any]) -> Any:
    """Call answer(measure, threads), `measure(threads)` being scripted."""
    watch = _watches(plan["seed"], lambda threads: gil_seconds(plan, threads))

    def measure(threads: int) -> float:
        return watch(_whole("measure(threads)", "threads", threads))

    return answer(measure, plan["threads"])


def with_scripted_steps(answer: Any, rank: int, world_size: int, plan: Mapping[str, Any]) -> Any:
    """Call answer(measure, worlds, samples), `measure(ranks, samples)` being scripted.

    Return what it found, and the laps that it was handed for each (ranks, samples).
    """
    watch = _watches(plan["seed"], lambda ranks, samples: step_seconds(plan, ranks, samples))
    laps: dict[tuple[int, int], list[float]] = {}

    def measure(ranks: int, samples: int) -> float:
        asked = "measure(ranks, samples)"
        lap = watch(_whole(asked, "ranks", ranks), _whole(asked, "samples", samples))
        laps.setdefault((int(ranks), int(samples)), []).append(lap)
        return lap

    return {"found": answer(measure, list(plan["worlds"]), plan["samples"]), "laps": laps}


def _watches(seed: int, truth: Callable[..., float]) -> Callable[..., float]:
    watches: dict[tuple[int, ...], Stopwatch] = {}

    def watch(*arguments: int) -> float:
        if arguments not in watches:
            rng = random.Random(f"{seed}/{arguments}")
            warm_up, outlier = rng.uniform(3, 12), rng.uniform(6, 20)
            script = Script(seed, NOISE * truth(*arguments), warm_up, outlier)
            watches[arguments] = Stopwatch(script, truth)
        return watches[arguments](*arguments)

    return watch


def _whole(call: str, name: str, value: Any) -> int:
    try:
        whole = int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{call}: {name} is a whole number, not {value!r:.60}.") from None
    if whole != value or whole < 1:
        raise ValueError(f"{call}: {name} is a whole number, 1 or more; it was {value!r:.60}.")
    return whole
