"""The check of `crossover`: messages with a scripted stopwatch, and whether the fit found its truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from math import log2
from operator import index
from typing import Any

from helpers.checks.stopwatch import Script, Stopwatch

CLOSE = 0.10
"""How far alpha and beta may be off, as a part of the truth; what robust fits miss is below 0.05."""

CLOSE_LENGTH = 0.25
"""The same for the length, which has the errors of both in it."""


def with_scripted_messages(
    answer: Any, rank: int, world_size: int, scripted: Mapping[str, Any]
) -> Any:
    """Call answer(measure, ranks), `measure(nbytes)` being scripted. Runs in a rank."""
    alpha, beta = scripted["alpha"], scripted["beta"]
    watch = Stopwatch(Script(scripted["seed"], noise_s=0.04 * alpha), lambda n: alpha + beta * n)

    def measure(nbytes: int) -> float:
        if not hasattr(nbytes, "__index__") or nbytes < 0:
            raise ValueError(
                f"measure({nbytes}): give the bytes as a whole number (int), 0 or more."
            )
        return watch(index(nbytes))

    return answer(measure, scripted["ranks"])


def overtakes(alpha: float, beta: float, ranks: int) -> float:
    """Give the bytes from which a ring all-reduce is faster than recursive doubling.

    Where log2(p) (alpha + beta n) equals 2 (p - 1) (alpha + beta n / p); p a power of two, 4 at least.
    """
    doublings, steps = log2(ranks), 2 * (ranks - 1)
    return alpha * (steps - doublings) / (beta * (doublings - steps / ranks))


def fits(alpha: float, beta: float, length: float) -> Callable[[Any], str]:
    """Make the function that tells what is wrong with a returned (alpha, beta, length), or ""."""

    def find(got: Any) -> str:
        if not isinstance(got, (tuple, list)) or len(got) != 3:
            return "three numbers must come back: (alpha, beta, length)"
        try:
            found = [float(value) for value in got]
        except (TypeError, ValueError):
            return f"{got!r:.60} are not three numbers"
        if _off(found[0], alpha) > CLOSE:
            return f"alpha is {_us(found[0])}, the truth is {_us(alpha)}.{_why(found, alpha, beta)}"
        if _off(found[1], beta) > CLOSE:
            return f"beta is {_ns(found[1])}, the truth is {_ns(beta)}.{_why(found, alpha, beta)}"
        if _off(found[2], length) > CLOSE_LENGTH:
            return (
                f"alpha and beta are right, but the length is {found[2]:,.0f} bytes and should be "
                f"{length:,.0f}: set the two costs equal and solve for n once more."
            )
        return ""

    return find


def _why(found: list[float], alpha: float, beta: float) -> str:
    a, b = found[0] / alpha, found[1] / beta
    if any(_off(ratio, unit) < 0.3 for ratio in (a, b) for unit in (1e3, 1e6, 1e9)):
        return " Seconds, and seconds for each byte: no other units."
    if found[1] > 1:
        return " beta is the time for each byte, one over the bandwidth."
    if _off(a, 1) <= CLOSE:
        return (
            " Long messages show beta: at some megabytes the time is nearly all bytes. There too, "
            "leave the first lap out and take the median of about 20 others."
        )
    if a > 12:
        return " Short messages show alpha: there the bytes hardly count."
    if a > 1:
        return (
            " Too slow: first laps or disturbed laps are in it. Leave the first lap of each length "
            "out, and take the median of about 20 others."
        )
    return " Too small: short messages show alpha; a line through long ones alone may miss it."


def _off(found: float, truth: float) -> float:
    return abs(found - truth) / truth if math.isfinite(found) else math.inf


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.4g} µs"


def _ns(seconds_per_byte: float) -> str:
    return f"{seconds_per_byte * 1e9:,.4g} ns for each byte"
