"""The cases of `fit_amdahl`: times that follow the law, with a little noise, not always from 1 rank."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from statistics import linear_regression
from typing import Any

from helpers.exercises.model import Case
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run

UNEVEN = (0, -0.5, 1, -1, -1, 1)
"""How much too slow each time is, in parts of the noise: the times of 1, 2, 3, 4, 6 and 8 ranks.

Laid so that least squares over all points, weighted or not, find the truth within 0.005, and a line
through the first two, the last two, or the first and the last point misses it by 0.018 or more.
"""

CLOSE_NOISY = 0.012


def amdahl_cases(rng: random.Random) -> Iterator[Case]:
    """Give exact times, times that begin at 2 ranks, and noisy ones."""
    for worlds, ranks, serial, noise in (
        ((1, 2, 4, 8), 64, rng.uniform(0.05, 0.2), 0.0),
        ((2, 4, 8, 16), 100, rng.uniform(0.1, 0.3), 0.0),
        (
            (1, 2, 3, 4, 6, 8),
            32,
            rng.uniform(0.2, 0.4),
            rng.choice((-1, 1)) * rng.uniform(0.06, 0.07),
        ),
        ((8, 1, 4), 16, rng.uniform(0.5, 0.8), 0.0),
    ):
        whole = rng.uniform(0.02, 4.0)
        slower = [noise * part for part in UNEVEN] if noise else [0.0] * len(worlds)
        times = {
            p: whole * (serial + (1 - serial) / p) * (1 + more)
            for p, more in zip(worlds, slower, strict=True)
        }
        label = f"{', '.join(map(str, worlds))} ranks{', noisy' if noise else ''}"
        yield Case(label, 1, [(times, ranks)], [_fitted(times, ranks, serial, whole, noise)])


def _fitted(
    times: Mapping[int, float], ranks: int, serial: float, whole: float, noise: float
) -> Callable[[Any], str]:
    close = CLOSE_NOISY if noise else 1e-3

    def find(got: Any) -> str:
        try:
            found = [float(value) for value in got]
        except (TypeError, ValueError):
            return f"two numbers must come back, (serial, speedup), not {got!r:.60}."
        if len(found) != 2:
            return f"two numbers must come back, (serial, speedup), not {len(found)}."
        share, speedup = found
        if not abs(share - serial) <= close:
            return f"serial is {share:.4g}, the truth is {serial:.4g}.{_why(share)}"
        wanted = 1 / (share + (1 - share) / ranks)
        if math.isclose(speedup, wanted, rel_tol=0.01):
            return ""
        said = f"serial is right; speedup on {ranks} ranks is {speedup:.4g}, it should be {wanted:.4g}."
        if math.isclose(speedup, 1 / share, rel_tol=0.01):
            return f"{said} That is the limit for ever more ranks; put p = {ranks} in."
        if math.isclose(speedup, ranks - share * (ranks - 1), rel_tol=0.01):
            return f"{said} That is weak scaling's law (Gustafson). Amdahl's work stays the same."
        if math.isclose(speedup, 1 / wanted, rel_tol=0.01):
            return f"{said} It is upside down."
        return f"{said} It is T(1) / T(p) = 1 / (s + (1 - s) / p)."

    def _why(share: float) -> str:
        if abs(share - 100 * serial) < 4:
            return " A share is between 0 and 1, no percentage."
        if abs(share - (1 - serial)) <= close:
            return " That is the other part: what the ranks share."
        most = max(times)
        if 1 in times and abs(share - times[most] / times[1]) < 1e-3:
            return f" T({most}) still holds (1 - s) / {most} of the work that is shared."
        if math.isclose(share, serial * whole, rel_tol=0.05 if noise else 0.01):
            return " That is a, in seconds: it becomes a share by a / (a + b)."
        slope, height = linear_regression(list(times), list(times.values()))
        if math.isclose(share, height / (height + slope), rel_tol=0.01):
            return (
                " That is a / (a + b) of a line over p. T = a + b / p is a straight line over 1 / p: "
                "those are the x of the fit."
            )
        if not 0 <= share <= 1:
            return " A share is between 0 and 1: s = a / (a + b)."
        if 1 not in times:
            return (
                f" Here the smallest world has {min(times)} ranks, so T(1) is not measured: the line "
                "gives it, T(1) = a + b."
            )
        if noise and abs(share - serial) < 0.1:
            return (
                " That is near. These times are noisy, and a line through two or three of them has "
                "their noise in full: fit a line over 1 / p through all points, by least squares."
            )
        return " Fit T = a + b / p, a line over 1 / p, through all points; then s = a / (a + b)."

    return find


def look_at_amdahl(case: Case, run: Run) -> str:
    """Say what an answer that crashed mostly took for granted."""
    if isinstance(run.failure, RankFailed) and run.failure.error.kind == "KeyError":
        (times, _), worlds = case.inputs[0], run.failure.error.message
        return (
            f"`times` has no {worlds}: here its numbers of ranks are {', '.join(map(str, times))}. "
            "T(1) need not be measured: it is a + b, the height of the fitted line at 1 / p = 1."
        )
    return ""
