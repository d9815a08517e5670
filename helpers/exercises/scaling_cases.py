"""The cases of `measure_gil`, `strong_scaling`, `weak_scaling`: scripted laps, and their truth."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from statistics import quantiles
from typing import Any, Literal

from helpers.exercises.model import Case
from helpers.exercises.scripted_scaling import NOISE, gil_seconds, step_seconds
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run

CLOSE = 0.07
"""How far a time or a ratio may be off, as a part of the truth: noise is at most 0.04 of it."""

CLOSE_SHARE = 0.06
"""How far the share of time that holds the GIL may be off."""

CLOSE_SPREAD = 0.7
"""How near a spread must be to that of the laps handed out: quartiles are reckoned in several ways."""

SAME = 0.03
"""How near a wrong value must be to that of a known mistake: robust times are nearer."""

_LAPS = (
    "Leave each setting's first lap out and take the median of about 20 others: first laps are slow, "
    "and now and then one is far too long."
)


def gil_cases(rng: random.Random) -> Iterator[Case]:
    """Give work that holds the GIL always, never, and some of the time."""
    for threads, held in (
        (2, 1.0),
        (4, 0.0),
        (3, rng.uniform(0.3, 0.6)),
        (8, rng.uniform(0.1, 0.3)),
    ):
        plan = {
            "threads": threads,
            "held": round(held, 2),
            "seconds": rng.uniform(0.002, 0.02),
            "seed": rng.randrange(10**6),
        }
        label = f"{threads} threads, the GIL held {100 * plan['held']:.0f} % of the time"
        given = f"measure, threads = {threads}"
        yield Case(label, 1, [(plan,)], [_as_gil(plan)], given=given)


def strong_cases(rng: random.Random) -> Iterator[Case]:
    """Give steps whose samples, in all, stay the same."""
    return _scaling(rng, strong=True)


def weak_cases(rng: random.Random) -> Iterator[Case]:
    """Give steps whose samples on each rank stay the same."""
    return _scaling(rng, strong=False)


def _scaling(rng: random.Random, strong: bool) -> Iterator[Case]:
    for worlds, samples in (((1, 2, 4), 96), ((2, 1, 3, 6), 120), ((1, 8, 2), 64)):
        step = rng.uniform(0.01, 0.1)
        plan = {
            "worlds": worlds,
            "samples": samples,
            "fixed": step * rng.uniform(0.1, 0.2),
            "sample": step / samples,
            "communication": step * rng.uniform(0.2, 0.5),
            "seed": rng.randrange(10**6),
        }
        ranks = ", ".join(map(str, worlds))
        each = "in all" if strong else "on each rank"
        yield Case(
            f"{ranks} ranks, {samples} samples {each}",
            1,
            [(plan,)],
            [_as_scaled(plan, strong)],
            given=f"measure, worlds = {list(worlds)}, samples = {samples}",
        )


def look_at_scaling(case: Case, run: Run) -> str:
    """Say what an answer that crashed mostly took for granted."""
    if isinstance(run.failure, RankFailed) and run.failure.error.kind == "KeyError":
        return (
            f"In `worlds` the 1 need not come first (here: {case.inputs[0][0]['worlds']}): measure "
            "all, and compute the efficiencies after that."
        )
    return ""


def _as_gil(plan: Mapping[str, Any]) -> Callable[[Any], str]:
    threads = plan["threads"]
    one, many = gil_seconds(plan, 1), gil_seconds(plan, threads)
    longer = many / one

    def find(got: Any) -> str:
        if (found := _numbers(got, 2)) is None:
            return f"two numbers must come back, (speedup, held), not {_shown(got)}."
        speedup, held = found
        if not _near(speedup, threads / longer):
            mistakes = {
                1 / longer: f" In T({threads}) there are {threads} pieces of work, in T(1) one.",
                longer / threads: " It is upside down: faster means more than 1.",
                longer: " That is how much longer a lap takes, not how much more work gets done.",
            }
            return f"speedup is {speedup:.3g}, the truth is {threads / longer:.3g}." + _which(
                mistakes, speedup
            )
        if not abs(held - plan["held"]) <= CLOSE_SHARE:
            if abs(held - (threads / speedup - 1) / (threads - 1)) < 0.005:
                return (
                    f"held is {held:.3g}, the truth is {plan['held']:.3g}. It fits your speed-up of "
                    f"{speedup:.3g}, so the formulas are right: the times are off. {_LAPS}"
                )
            return (
                f"speedup is right, but held is {held:.3g}, the truth is {plan['held']:.3g}. Solve "
                "T(n) = T(1) (1 - h + h n) for h; where T(n) is n times T(1), h is 1."
            )
        return ""

    return find


def _as_scaled(plan: Mapping[str, Any], strong: bool) -> Callable[[Any], str]:
    worlds: tuple[int, ...] = plan["worlds"]
    samples: int = plan["samples"]

    def each(ranks: int) -> int:
        return samples // ranks if strong else samples

    def find(run: Any) -> str:
        got, laps = run["found"], run["laps"]
        if not isinstance(got, dict) or set(got) != set(worlds):
            return f"a dict must come back, one key for each of {list(worlds)}, not {_shown(got)}."
        for ranks in worlds:
            if problem := _one_world(got[ranks], ranks, laps.get((ranks, each(ranks)), [])):
                return f"on {_ranks(ranks)} {problem}"
        return ""

    def _one_world(got: Any, ranks: int, laps: list[float]) -> str:
        if (found := _numbers(got, 3)) is None:
            return (
                f"three numbers must come back, (seconds, spread, efficiency), not {_shown(got)}."
            )
        seconds, spread, efficiency = found
        true = step_seconds(plan, ranks, each(ranks))
        if not _near(seconds, true * (1 + NOISE / 2)):
            return f"seconds is {_ms(seconds)}, the truth is {_ms(true)}." + _work(seconds, ranks)
        if len(laps) > 2 and math.isclose(seconds, min(laps), rel_tol=1e-6):
            return "seconds is the quickest lap; the median is asked for."
        if problem := _spread(spread, laps, 1.05 * NOISE * true):
            return problem
        gain = step_seconds(plan, 1, samples) / true
        wanted = gain / ranks if strong else gain
        if not _near(efficiency, wanted):
            return f"efficiency is {efficiency:.3g}, the truth is {wanted:.3g}." + _ratio(
                efficiency, gain, ranks
            )
        return ""

    def _work(seconds: float, ranks: int) -> str:
        true = step_seconds(plan, ranks, each(ranks))
        if any(_near(seconds, unit * true) for unit in (1e3, 1e6, 1e9)):
            return " Seconds: no other unit."
        other = step_seconds(plan, ranks, samples if strong else max(1, samples // ranks))
        told = (
            " That is the time with all samples on each rank: strong scaling shares them out, "
            "`samples // ranks` for each."
            if strong
            else " That is the time with the samples shared out: in weak scaling each rank keeps "
            "`samples`."
        )
        return _which({other * (1 + NOISE / 2): told} if ranks > 1 else {}, seconds)

    def _ratio(efficiency: float, gain: float, ranks: int) -> str:
        mistakes = {
            1 / gain: " It is upside down: T(1) stands above.",
            ranks / gain: " It is upside down.",
        }
        first = step_seconds(plan, worlds[0], each(worlds[0]))
        relative = first / step_seconds(plan, 1, samples) * gain
        if worlds[0] != 1:
            told = f" That is against {_ranks(worlds[0])}, which come first here: the baseline is 1 rank."
            for factor in (1, 1 / ranks, worlds[0] / ranks):
                mistakes[relative * factor] = told
        if strong:
            mistakes[gain] = (
                " That is the speed-up T(1) / T(p); the efficiency is that, divided by p."
            )
        else:
            mistakes[gain / ranks] = (
                " That is strong scaling's formula. Here p ranks do p times the work, so that T(p) = "
                "T(1) is ideal."
            )
            mistakes[gain * ranks] = " That is how much more work gets done; divide it by p."
        return _which(mistakes, efficiency, " The times are right: set in the formula once more.")

    return find


def _spread(spread: float, laps: list[float], most: float) -> str:
    """Compare with the quartiles of the laps handed out, however many first ones are left out."""
    methods: tuple[Literal["inclusive", "exclusive"], ...] = ("inclusive", "exclusive")
    cuts = [
        quantiles(laps[left_out:], n=4, method=how)
        for left_out, how in product(range(max(2, len(laps) - 14)), methods)
        if len(laps[left_out:]) > 1
    ]
    right = [third - first for first, _, third in cuts]
    if right and CLOSE_SPREAD * min(right) <= spread <= min(max(right) / CLOSE_SPREAD, most):
        return ""
    if any(_near(spread, third, SAME) for _, _, third in cuts):
        why = "that is a quartile itself. Third quartile minus first quartile."
    elif any(math.isclose(2 * spread, distance, rel_tol=0.02) for distance in right):
        why = "that is half the distance between the quartiles. All of it, third minus first."
    elif spread > most:
        why = (
            "a lap that another program disturbed is in it. The distance between the quartiles "
            "(of about 20 laps, the first left out) does not see single laps."
        )
    elif spread <= 0:
        why = "these laps are not all alike. Third quartile minus first quartile, in seconds."
    else:
        why = "it is third quartile minus first quartile of the laps, in seconds."
    return f"seconds is right, but spread is {_ms(spread)}: {why}"


def _which(mistakes: Mapping[float, str], got: float, otherwise: str = f" {_LAPS}") -> str:
    return next((why for value, why in mistakes.items() if _near(got, value, SAME)), otherwise)


def _numbers(got: Any, count: int) -> list[float] | None:
    try:
        numbers = [float(value) for value in got]
    except (TypeError, ValueError):
        return None
    right = len(numbers) == count and all(map(math.isfinite, numbers))
    return numbers if right and not isinstance(got, dict) else None


def _near(got: float, truth: float, close: float = CLOSE) -> bool:
    return abs(got - truth) <= close * abs(truth)


def _shown(got: Any) -> str:
    return f"{got!r:.80}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.4g} ms"


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"
