"""5.5 At which size the ring is faster (15 min, ●●●○○, further)

- Time one length several times and look at the timings: which of them tell the truth about the machine?
- Discard the first timing of each length and take the median of about twenty more. A short message shows α,
  and the slope between long messages shows β. Then set the two costs equal and solve for n.
- time(n) = median of 20 timings, after discarding one; alpha = time(1); beta = (time(10_000_000) - alpha) /
  10_000_000. With d = log2(p), s = 2(p - 1): n = alpha (s - d) / (beta (d - s / p)).
"""

import math
from collections.abc import Callable
from math import log2

from helpers.checks.author import *
from helpers.checks.stopwatch import Script, Stopwatch
from helpers.exercises.nb05_collective_algorithms.in_ranks import run_with_scripted_messages

TOLERANCE, LENGTH_TOLERANCE = 0.10, 0.25
"""Largest relative errors of alpha and beta, and of the length. Robust fits are within 0.05."""
NOT_THREE_NUMBERS = Finding("return three numbers: (alpha, beta, length)")
UNITS_ADVICE = "Return alpha in seconds and beta in seconds per byte, not in other units."
MEDIAN_ADVICE = (
    "Leave out the first measurement of each length, and take the median of about 20 others."
)
LONG_MESSAGE_ADVICE = (
    "alpha is right. Take beta from long messages, because at a few megabytes, nearly all of the time "
    "depends on the bytes. " + MEDIAN_ADVICE
)
SHORT_MESSAGE_ADVICE = (
    "alpha is far too large. Take it from short messages, where the bytes cost almost no time."
)
SLOW_START_ADVICE = (
    "alpha is too large, perhaps because slow first or disturbed measurements count. "
    + MEDIAN_ADVICE
)
SMALL_ALPHA_ADVICE = (
    "alpha is too small. Take it from short messages, because a line fitted only to long messages might "
    "miss it."
)
BANDWIDTH_ADVICE = "Your beta is the bandwidth. Return its reciprocal, the time per byte."
CROSSOVER_ADVICE = "alpha and beta are right. Set the two costs equal and solve for n again."


def case(draw: Draw) -> Case:
    ranks, seed = draw.of(4, 8, 16, 32, 1024), draw.whole(0, 10**6)
    alpha, beta = draw.rng.uniform(30e-6, 120e-6), draw.rng.uniform(0.2e-9, 1.0e-9)
    script = Script(seed, noise_s=0.04 * alpha)
    return Case(
        f"{ranks} ranks, α = {alpha * 1e6:.0f} µs, 1/β = {1e-9 / beta:.1f} GB/s",
        [(ranks,)],
        right=judge_fit(alpha, beta, crossover_bytes(alpha, beta, ranks)),
        timings=lambda: Stopwatch(script, lambda nbytes: alpha + beta * nbytes),
    )


def crossover_bytes(alpha: float, beta: float, ranks: int) -> float:
    """Return the size in bytes above which a ring all-reduce is faster than recursive doubling.

    At this size n, log2(p) (alpha + beta n) equals 2 (p - 1) (alpha + beta n / p). p is a power of two, at
    least 4.
    """
    doublings, steps = log2(ranks), 2 * (ranks - 1)
    return alpha * (steps - doublings) / (beta * (doublings - steps / ranks))


def judge_fit(
    alpha: float, beta: float, length: float
) -> Callable[[Measured, int], Finding | None]:
    """Return the function that judges a returned (alpha, beta, length)."""

    def judge(got: Measured, rank: int) -> Finding | None:
        try:
            a, b, n = map(float, got.found)
        except (TypeError, ValueError, RuntimeError):
            return NOT_THREE_NUMBERS
        if relative_error(a, alpha) > TOLERANCE:
            what = f"alpha is {a * 1e6:,.4g} µs; the true value is {alpha * 1e6:,.4g} µs"
            return Finding(what, explain_fit(a / alpha, b / beta, b))
        if relative_error(b, beta) > TOLERANCE:
            what = f"beta is {b * 1e9:,.4g} ns per byte; the true value is {beta * 1e9:,.4g}"
            return Finding(what, explain_fit(a / alpha, b / beta, b))
        if relative_error(n, length) > LENGTH_TOLERANCE:
            return Finding(
                f"the length is {n:,.0f} bytes; the true length is {length:,.0f}", CROSSOVER_ADVICE
            )
        return None

    return judge


def explain_fit(alpha_ratio: float, beta_ratio: float, beta: float) -> str:
    """Explain a wrong fit. The ratios are its alpha and beta, divided by the true alpha and beta."""
    if any(
        relative_error(ratio, unit) < 0.3
        for ratio in (alpha_ratio, beta_ratio)
        for unit in (1e3, 1e6, 1e9)
    ):
        return UNITS_ADVICE
    if beta > 1:
        return BANDWIDTH_ADVICE
    if relative_error(alpha_ratio, 1) <= TOLERANCE:
        return LONG_MESSAGE_ADVICE
    return (
        SHORT_MESSAGE_ADVICE
        if alpha_ratio > 12
        else SLOW_START_ADVICE
        if alpha_ratio > 1
        else SMALL_ALPHA_ADVICE
    )


def relative_error(found: float, truth: float) -> float:
    return abs(found - truth) / truth if math.isfinite(found) else math.inf


EXERCISE = Exercise(case, kind=Kind.MEASUREMENT, driver=run_with_scripted_messages, sizes=(1,))
