"""Timings with known true values, and the tolerances of results, for notebook 10.

Most answers are ratios of times. If warm-up made all first timings too slow by the same factor, their ratio
would hide the error. So each tuple of arguments has a warm-up and outliers of a different size.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from itertools import product
from statistics import mean, quantiles
from typing import Any, Literal

from helpers.checks.author import *
from helpers.checks.stopwatch import Script, Stopwatch
from helpers.views.values import short_value

NOISE = 0.04
"""The largest error added to a timing, relative to its true length."""

TOLERANCE = 0.07
"""Largest relative error of a time or a ratio. The relative noise is at most 0.04."""

SPREAD_TOLERANCE = 0.7
"""Tolerance of a spread, compared with the spread of the timings.

The tolerance is needed because quartiles have several definitions.
"""

MISTAKE_TOLERANCE = 0.03
"""Largest difference of a wrong value from the value of a known mistake. Robust times differ less."""

TIMING_ADVICE = (
    "Check your formula first. If it's right, the times are wrong: leave out each setting's first timing, "
    "and take the median of about 20 others. First timings are slow, and occasionally another one is far "
    "too long."
)


MEAN_ADVICE = (
    "Your result is the mean of the timings, which includes the slow ones. Return the median, because a "
    "few slow timings don't change it."
)
MIN_TIMINGS = 12
"""Minimum number of timings. With fewer, a single outlier might change a quartile."""


def draw_scaling_case(draw: Draw, strong: bool) -> Case:
    """Draw steps on several numbers of ranks, with `samples` in all if `strong`, otherwise on each rank."""
    first, *others = draw.of((1, 2, 4), (2, 1, 3, 6), (1, 8, 2), (4, 1, 2))
    worlds = (first, *others)
    samples, step = math.lcm(*worlds) * draw.whole(4, 12), draw.rng.uniform(0.01, 0.1)
    plan: dict[str, Any] = {
        "worlds": worlds,
        "samples": samples,
        "fixed": step * draw.rng.uniform(0.1, 0.2),
        "sample": step / samples,
        "communication": step * draw.rng.uniform(0.2, 0.5),
        "seed": draw.rng.randrange(10**6),
    }
    each = "in all" if strong else "on each rank"
    return Case(
        f"{', '.join(map(str, worlds))} ranks, {samples} samples {each}",
        [(list(worlds), samples)],
        right=judge_scaling(plan, strong),
        timings=lambda: simulate_timings(plan["seed"], lambda p, each: step_seconds(plan, p, each)),
        facts={"worlds": list(worlds)},
        shown=f"measure, worlds = {list(worlds)}, samples = {samples}",
    )


def step_seconds(plan: Mapping[str, Any], ranks: int, samples: int) -> float:
    """Return the true seconds of a step with `samples` on each rank."""
    communication = plan["communication"] * (ranks - 1) / ranks
    seconds: float = plan["fixed"] + plan["sample"] * samples + communication
    return seconds


def simulate_timings(seed: int, truth: Callable[..., float]) -> Callable[..., float]:
    """Return a function that simulates timings, with a separate stopwatch for each tuple of arguments."""
    made: dict[tuple[int, ...], Stopwatch] = {}

    def measure(*arguments: int) -> float:
        if arguments not in made:
            rng = random.Random(f"{seed}/{arguments}")
            warm_up, outlier = rng.uniform(3, 12), rng.uniform(6, 20)
            script = Script(seed, NOISE * truth(*arguments), warm_up, outlier)
            made[arguments] = Stopwatch(script, truth)
        return made[arguments](*arguments)

    return measure


def judge_scaling(
    plan: Mapping[str, Any], strong: bool
) -> Callable[[Measured, int], Finding | None]:
    """Return the function that judges measured scaling."""
    worlds: tuple[int, ...] = plan["worlds"]
    samples: int = plan["samples"]

    def samples_per_rank(ranks: int) -> int:
        return samples // ranks if strong else samples

    def judge(measured: Measured, rank: int) -> Finding | None:
        got, timings = measured
        if not isinstance(got, dict) or set(got) != set(worlds):
            return Finding(
                f"return a dict with one key for each of {list(worlds)}, not {short_repr(got)}."
            )
        for ranks in worlds:
            if problem := judge_world(
                got[ranks], ranks, list(timings.get((ranks, samples_per_rank(ranks)), ()))
            ):
                return Finding(f"on {_rank_count(ranks)}, {problem.what}", problem.advice)
        return None

    def judge_world(got: Any, ranks: int, timings: list[float]) -> Finding | None:
        if (found := finite_numbers(got, 3)) is None:
            return Finding(
                f"return three numbers, (seconds, spread, efficiency), not {short_repr(got)}."
            )
        seconds, spread, efficiency = found
        true = step_seconds(plan, ranks, samples_per_rank(ranks))
        if not is_close(seconds, true * (1 + NOISE / 2)):
            said = f"seconds is {_in_ms(seconds)}; the true time is {_in_ms(true)}."
            return Finding(said, explain_seconds(seconds, ranks, timings))
        if len(timings) > 2 and math.isclose(seconds, min(timings), rel_tol=1e-6):
            return Finding("seconds is the shortest timing: return the median.")
        if problem := _judge_spread(spread, timings, 1.05 * NOISE * true):
            return Finding(problem)
        gain = step_seconds(plan, 1, samples) / true
        wanted = gain / ranks if strong else gain
        if not is_close(efficiency, wanted):
            said = f"seconds is right, but efficiency is {efficiency:.3g}; the true value is {wanted:.3g}."
            return Finding(said, explain_efficiency(efficiency, gain, ranks))
        return None

    def explain_seconds(seconds: float, ranks: int, timings: list[float]) -> tuple[str, ...]:
        true = step_seconds(plan, ranks, samples_per_rank(ranks))
        means = [mean(timings[left_out:]) for left_out in (0, 1) if len(timings) > left_out]
        if len(timings) > 2 and any(math.isclose(seconds, each, rel_tol=1e-6) for each in means):
            return (MEAN_ADVICE,)
        if any(is_close(seconds, unit * true) for unit in (1e3, 1e6, 1e9)):
            return ("Return seconds, not milliseconds or another unit.",)
        other = step_seconds(plan, ranks, samples if strong else max(1, samples // ranks))
        told = (
            "You return the time of a step with all samples on each rank. In strong scaling, each rank has "
            "only `samples // ranks`."
            if strong
            else (
                "You return the time of a step with the samples divided among the ranks. In weak scaling, "
                "each rank has `samples`."
            )
        )
        return matching_advice(seconds, *[(other * (1 + NOISE / 2), told)] * (ranks > 1))

    def explain_efficiency(efficiency: float, gain: float, ranks: int) -> tuple[str, ...]:
        told = "The efficiency is upside down: T(1) belongs in the numerator."
        mistakes = [(1 / gain, told), (ranks / gain, told)]
        first = step_seconds(plan, worlds[0], samples_per_rank(worlds[0]))
        relative = first / step_seconds(plan, 1, samples) * gain
        if worlds[0] != 1:
            told = "Your baseline is the first number of ranks in `worlds`, but it must be 1 rank."
            mistakes += [(relative * f, told) for f in (1, 1 / ranks, worlds[0] / ranks)]
        if strong:
            told = "Your result is the speed-up T(1) / T(p). To get the efficiency, divide it by p."
            mistakes.append((gain, told))
        else:
            told = (
                "You use the formula of strong scaling. In weak scaling, p ranks do p times the work, so the "
                "ideal is T(p) = T(1)."
            )
            mistakes.append((gain / ranks, told))
            told = "Your result is the growth in work per second. Divide it by p."
            mistakes.append((gain * ranks, told))
        return matching_advice(efficiency, *mistakes)[:-1]

    return judge


def _judge_spread(spread: float, timings: list[float], limit: float) -> str:
    """Compare a spread with the quartiles of the timings, with or without the first timings."""
    methods: tuple[Literal["inclusive", "exclusive"], ...] = ("inclusive", "exclusive")
    cuts = [
        quantiles(timings[left_out:], n=4, method=how)
        for left_out, how in product(range(max(2, len(timings) - 14)), methods)
        if len(timings[left_out:]) > 1
    ]
    right = [third - first for first, _, third in cuts]
    if right and SPREAD_TOLERANCE * min(right) <= spread <= min(
        max(right) / SPREAD_TOLERANCE, limit
    ):
        return ""
    if len(timings) < MIN_TIMINGS:
        count = plural(len(timings), "timing")
        why = (
            f"you took only {count} of this setting, so a single slow one changes the result. Take about "
            "20 after the first. The spread is their third quartile minus their first quartile."
        )
    elif any(
        math.isclose(spread, cut, rel_tol=1e-6)
        for first, _, third in cuts
        for cut in (first, third)
    ):
        why = "that's one quartile. The spread is the third quartile minus the first quartile."
    elif any(math.isclose(2 * spread, distance, rel_tol=0.02) for distance in right):
        why = (
            "that's half the distance between the quartiles. The spread is the third quartile minus the "
            "first."
        )
    elif spread > limit:
        why = (
            "that's too large for your timings. The spread is the third quartile minus the first "
            "quartile, in seconds, of about 20 timings without the first. Unlike a standard deviation, it "
            "isn't changed by single slow timings."
        )
    elif spread <= 0:
        why = (
            "it should be positive, because your timings differ. The spread is the third quartile minus "
            "the first quartile, in seconds."
        )
    else:
        why = (
            "the spread is the third quartile minus the first quartile of the timings, in seconds."
        )
    return f"seconds is right, but spread is {_in_ms(spread)}: {why}"


def matching_advice(got: float, *mistakes: tuple[float, str]) -> tuple[str, ...]:
    """Return the advice of all mistakes with this result, then the general advice on wrong times."""
    return (
        *(words for value, words in mistakes if is_close(got, value, MISTAKE_TOLERANCE)),
        TIMING_ADVICE,
    )


def finite_numbers(got: Any, count: int) -> list[float] | None:
    """Return the answer's result as `count` finite numbers, or None if it is anything else."""
    try:
        if isinstance(got, dict) or len(got) != count:
            return None
        numbers = [float(value) for value in got]
    except (TypeError, ValueError, ArithmeticError, RuntimeError):  # complex tensors, huge integers
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def is_close(got: float, truth: float, tolerance: float = TOLERANCE) -> bool:
    return abs(got - truth) <= tolerance * abs(truth)


def short_repr(got: Any) -> str:
    return short_value(got, 80)


def _in_ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.4g} ms"


def _rank_count(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"
