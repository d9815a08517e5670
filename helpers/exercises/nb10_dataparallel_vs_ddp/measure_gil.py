"""10.2 The price of the GIL (8 min, ●●○○○)

- Which timings measure the work, and which something else?
- A helper `time(n)`: one timing thrown away, then the median of about twenty. Then solve T(n) = T(1) (1 - h
  + h n) for h.
- longer = time(threads) / time(1); return threads / longer, (longer - 1) / (threads - 1)
"""

from collections.abc import Mapping
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb10_dataparallel_vs_ddp.in_ranks import run_with_scripted_threads
from helpers.exercises.nb10_dataparallel_vs_ddp.shared import (
    TIMING_ADVICE,
    finite_numbers,
    is_close,
    matching_advice,
    short_repr,
    simulate_timings,
)

SHARE_TOLERANCE = 0.06
"""By how much the share of time that holds the GIL may be off."""


def case(draw: Draw) -> Case:
    threads, kind = draw.of(2, 3, 4, 8), draw.of("always", "never", "at times", "at times")
    held = {"always": 1.0, "never": 0.0}.get(kind, draw.rng.uniform(0.1, 0.6))
    plan: dict[str, Any] = {
        "threads": threads,
        "held": round(held, 2),
        "seconds": draw.rng.uniform(0.002, 0.02),
        "seed": draw.rng.randrange(10**6),
    }
    return Case(
        f"{threads} threads, the GIL held {100 * plan['held']:.0f} % of the time",
        [(threads,)],
        right=lambda got, rank: find_problem(plan, got.found),
        timings=lambda: simulate_timings(plan["seed"], lambda threads: gil_seconds(plan, threads)),
        shown=f"measure, threads = {threads}",
        # many wrong formulas also give 0 % or 100 %
        telling=kind == "at times" and threads > 2,
    )


def gil_seconds(plan: Mapping[str, Any], threads: int) -> float:
    """Return the true seconds of this number of pieces of work, each in its own thread."""
    held: float = plan["held"]
    seconds: float = plan["seconds"] * (1 - held + held * threads)
    return seconds


def find_problem(plan: Mapping[str, Any], got: Any) -> Finding | None:
    """Return what is wrong with (speedup, held)."""
    threads = plan["threads"]
    longer = gil_seconds(plan, threads) / gil_seconds(plan, 1)
    if (found := finite_numbers(got, 2)) is None:
        return Finding(f"return two numbers, (speedup, held), not {short_repr(got)}.")
    speedup, held = found
    if not is_close(speedup, threads / longer):
        return Finding(
            f"speedup is {speedup:.3g}, the truth is {threads / longer:.3g}.",
            matching_advice(
                speedup,
                (
                    1 / longer,
                    "This is T(1) / T(n), but n threads do n pieces of work: multiply by n.",
                ),
                (longer / threads, "The speed-up is upside down: twice as fast is 2."),
                (
                    longer,
                    "This is how much longer a run takes, T(n) / T(1): the speed-up is n T(1) / T(n).",
                ),
            ),
        )
    if abs(held - plan["held"]) <= SHARE_TOLERANCE:
        return None
    said = f"speedup is near, but held is {held:.3g}, the truth is {plan['held']:.3g}."
    if abs(held - (threads / speedup - 1) / (threads - 1)) < 0.005:
        return Finding(
            f"{said} It fits your speed-up of {speedup:.3g}: the formulas are right.", TIMING_ADVICE
        )
    return Finding(
        said,
        "The share does not fit the times: solve T(n) = T(1) (1 - h + h n) for h. Where T(n) is n times "
        "T(1), h is 1.",
    )


EXERCISE = Exercise(case, kind=Kind.MEASUREMENT, driver=run_with_scripted_threads, sizes=(1,))
