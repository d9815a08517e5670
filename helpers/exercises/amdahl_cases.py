"""The cases of `fit_amdahl`: times that follow the law, with a little noise, not always from 1 rank."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from helpers.exercises.model import Case


def amdahl_cases(rng: random.Random) -> Iterator[Case]:
    """Give exact times, times that begin at 2 ranks, and noisy ones."""
    for worlds, ranks, serial, noise in (
        ((1, 2, 4, 8), 64, rng.uniform(0.05, 0.2), 0.0),
        ((2, 4, 8, 16), 100, rng.uniform(0.1, 0.3), 0.0),
        ((1, 2, 3, 4, 6, 8), 32, rng.uniform(0.2, 0.4), 0.01),
        ((8, 1, 4), 16, rng.uniform(0.5, 0.8), 0.0),
    ):
        whole = rng.uniform(0.02, 4.0)
        times = {
            p: whole * (serial + (1 - serial) / p) * (1 + rng.uniform(-noise, noise))
            for p in worlds
        }
        label = f"{', '.join(map(str, worlds))} ranks{', noisy' if noise else ''}"
        yield Case(label, 1, [(times, ranks)], [_fitted(times, ranks, serial, whole, noise)])


def _fitted(
    times: Mapping[int, float], ranks: int, serial: float, whole: float, noise: float
) -> Callable[[Any], str]:
    close = 0.04 if noise else 1e-3

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
        if math.isclose(share, serial * whole, rel_tol=0.05):
            return " That is a, in seconds: it becomes a share by a / (a + b)."
        if not 0 <= share <= 1:
            return " A share is between 0 and 1: s = a / (a + b)."
        if 1 not in times:
            return (
                f" Here the smallest world has {min(times)} ranks, so T(1) is not measured: the line "
                "gives it, T(1) = a + b."
            )
        most = max(times)
        if abs(share - times[most] / times[1]) < 1e-3:
            return f" T({most}) still holds (1 - s) / {most} of the work that is shared."
        return " Fit T = a + b / p, a line over 1 / p, through all points; then s = a / (a + b)."

    return find
