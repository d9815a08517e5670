"""10.5 Fit Amdahl's law (10 min, ●●○○○, further)

- Against which quantity, instead of p, should you plot T(p) = a + b / p to get a straight line?
- Fit a line through the points (1 / p, T(p)), using `numpy.polyfit` or `statistics.linear_regression`. Its
  height at 0 is the time that you can't make shorter by adding ranks.
- b, a = linear_regression([1 / p for p in times], list(times.values())); s = a / (a + b); return s, 1 /
  (s + (1 - s) / ranks)
"""

import math
from collections.abc import Callable, Mapping
from statistics import linear_regression
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb10_dataparallel_vs_ddp.shared import finite_numbers, short_repr

NOISE_PATTERN = (0, -0.5, 1, -1, -1, 1)
"""The error of each time, as a multiple of the noise: the times of 1, 2, 3, 4, 6 and 8 ranks.

The errors are chosen so that least squares over all points, weighted or not, is within 0.005 of the truth,
but a line through the first two, the last two, or the first and the last point is off by 0.018 or more.
"""
NOISY_TOLERANCE = 0.012


def case(draw: Draw) -> Case:
    worlds, ranks, least, most, noise = draw.of(
        ((1, 2, 4, 8), 64, 0.05, 0.2, 0.0),
        ((2, 4, 8, 16), 100, 0.1, 0.3, 0.0),
        ((1, 2, 3, 4, 6, 8), draw.of(32, 4, 6), 0.2, 0.4, draw.of(-0.065, 0.065)),
        ((8, 1, 4), 16, 0.5, 0.8, 0.0),
        ((3, 5, 12), draw.of(24, 12), 0.02, 0.4, 0.0),
    )
    serial, whole = draw.rng.uniform(least, most), draw.rng.uniform(0.02, 4.0)
    slower = [noise * part for part in NOISE_PATTERN] if noise else [0.0] * len(worlds)
    times = {
        p: whole * (serial + (1 - serial) / p) * (1 + more)
        for p, more in zip(worlds, slower, strict=True)
    }
    label = ", ".join(map(str, worlds))
    return Case(
        f"{label} ranks{', noisy' if noise else ''}",
        [(times, ranks)],
        right=judge_fit(times, ranks, serial, whole, noise),
        facts={"worlds": label},
    )


def judge_fit(
    times: Mapping[int, float], ranks: int, serial: float, total_s: float, noise: float
) -> Callable[[Any, int], str]:
    """Return the function that describes the problem with (serial, speedup), or returns ""."""
    close = NOISY_TOLERANCE if noise else 1e-3

    def judge(got: Any, rank: int) -> str:
        found = finite_numbers(got, 2)
        if found is None:
            return f"return two numbers, (serial, speedup), not {short_repr(got)}."
        share, speedup = found
        if not abs(share - serial) <= close:
            return f"serial is {share:.4g}; the true value is {serial:.4g}.{explain_share(share)}"
        wanted = 1 / (share + (1 - share) / ranks)
        if math.isclose(speedup, wanted, rel_tol=0.01):
            return ""
        said = f"serial is right, but speedup on {ranks} ranks is {speedup:.4g} instead of {wanted:.4g}."
        if math.isclose(speedup, 1 / share, rel_tol=0.01):
            return f"{said} You computed the limit for infinitely many ranks. Use p = {ranks}."
        if math.isclose(speedup, ranks - share * (ranks - 1), rel_tol=0.01):
            return (
                f"{said} You used weak scaling's law (Gustafson's), but in Amdahl's law, the work stays "
                "the same."
            )
        if math.isclose(speedup, 1 / wanted, rel_tol=0.01):
            return f"{said} Your fraction is upside down."
        return f"{said} The speedup is T(1) / T(p) = 1 / (s + (1 - s) / p)."

    def explain_share(share: float) -> str:
        if abs(share - 100 * serial) < 4:
            return " Return a share between 0 and 1, not a percentage."
        if abs(share - (1 - serial)) <= close:
            return " That's the other part, which is divided among the ranks."
        most = max(times)
        if 1 in times and abs(share - times[most] / times[1]) < 1e-3:
            return f" T({most}) still contains the parallel part, divided by {most}."
        if math.isclose(share, serial * total_s, rel_tol=0.05 if noise else 0.01):
            return " That's a, in seconds. To get a share, compute a / (a + b)."
        slope, height = linear_regression(list(times), list(times.values()))
        if math.isclose(share, height / (height + slope), rel_tol=0.01):
            return (
                " You fitted a line over p. T = a + b / p is a straight line over 1 / p, so use 1 / p as "
                "the x of your fit."
            )
        if not 0 <= share <= 1:
            return " A share is between 0 and 1: s = a / (a + b)."
        if noise and abs(share - serial) < 0.1:
            return (
                " That's close, but these times are noisy, and a line through only two or three points "
                "keeps their noise. Fit a line over 1 / p through all points, by least squares."
            )
        return " Fit T = a + b / p, a line over 1 / p, through all points; then s = a / (a + b)."

    return judge


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,))
