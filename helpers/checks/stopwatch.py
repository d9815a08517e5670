"""Simulate timings whose true values are known, for checks of kind MEASUREMENT.

    rank: measure(n) --[case, n]--> TimingReplies, in the launching process --Stopwatch--> seconds

The true values are never in the measuring process, neither in objects referenced by `measure` nor in any
other place that an answer could read. The rank asks for each timing over its channel.

A timing is a little longer than `truth`, because nothing makes a real machine faster. The first timing with
an argument is several times slower (warm-up). After that, one of the first few timings, and then about one in
eighteen, is ten times slower (as if another program had used the core). A median, a minimum and a trimmed
mean find the truth; a plain mean, a single timing and a first timing do not. No process sleeps: a thousand
timings take a millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

FIRST_OUTLIER = (2, 5)
"""The range of the first outlier's index (0 is the warm-up). Timings 1 to 5 contain exactly one outlier."""

BETWEEN_OUTLIERS = (15, 20)
MAX_TIMINGS, MAX_ARGUMENT_TUPLES = 10_000, 500
"""Maximum number of timings in a case, and of different arguments: far more than any answer needs."""


@dataclass(frozen=True)
class Script:
    """The errors of a simulated stopwatch and their seed.

    seed: the seed of all random numbers. warm_up, outlier: the factors by which such timings are longer.
    noise_s: the largest error added to a timing; errors are drawn uniformly from 0 to this value.
    """

    seed: int
    noise_s: float
    warm_up: float = 6.0
    outlier: float = 10.0
    first_outlier: tuple[int, int] = FIRST_OUTLIER
    between_outliers: tuple[int, int] = BETWEEN_OUTLIERS


class Stopwatch:
    """Simulates timings: call it with the arguments to time; it returns the seconds of one timing."""

    def __init__(self, script: Script, truth: Callable[..., float]) -> None:
        """Store the script. `truth(*arguments)` returns the true value of a timing, in seconds."""
        self._script = script
        self._truth = truth
        self._timing_counts: dict[Hashable, int] = {}
        self._next_outlier: dict[Hashable, int] = {}
        self._random: dict[Hashable, random.Random] = {}

    def __call__(self, *arguments: Hashable) -> float:
        # use a separate generator for each argument, so that other timings in between change nothing
        rng = self._random.setdefault(
            arguments, random.Random(f"{self._script.seed}/{arguments!r}")
        )
        timing = self._timing_counts.get(arguments, 0)
        self._timing_counts[arguments] = timing + 1
        # always add the error, because nothing makes a machine faster than it is
        seconds = self._truth(*arguments) + rng.uniform(0, self._script.noise_s)
        # the first outlier comes early, so that even a few timings contain one
        if timing == 0:
            self._next_outlier[arguments] = rng.randint(*self._script.first_outlier)
            return seconds * self._script.warm_up
        if timing == self._next_outlier[arguments]:
            self._next_outlier[arguments] += rng.randint(*self._script.between_outliers)
            return seconds * self._script.outlier
        return seconds

    @property
    def timings(self) -> dict[Hashable, int]:
        """Return the number of timings taken for each tuple of arguments."""
        return dict(self._timing_counts)


@dataclass
class TimingReplies:
    """Replies to the ranks of one world, which ask for timings: [case, *arguments] -> seconds.

    stopwatches: the stopwatch of each case, or None for a case without measurements. Because ranks may be
    hostile, an invalid question raises ValueError, and the reply is None once a limit is exceeded.
    """

    stopwatches: Sequence[Callable[..., float] | None]
    timings: list[dict[tuple[int, ...], list[float]]] = field(init=False)
    """The timings requested in each case, by their arguments."""

    def __post_init__(self) -> None:
        self.timings = [{} for _ in self.stopwatches]
        self._reply_counts = [0 for _ in self.stopwatches]

    def __call__(self, question: Any) -> float | None:
        # isinstance would accept True as 1
        if not isinstance(question, list) or any(
            type(number) is not int or number < 0 for number in question
        ):
            raise ValueError("no question")
        case, arguments = question[0], tuple(question[1:])
        watch, timings = self.stopwatches[case], self.timings[case]
        if watch is None:
            raise ValueError("nothing is measured here")
        # arguments are stored for the judge, so a hostile rank could otherwise fill the launcher's memory
        if len(timings) >= MAX_ARGUMENT_TUPLES and arguments not in timings:
            return None
        if self._reply_counts[case] >= MAX_TIMINGS:
            return None
        # count a timing before computing it, so that a failing one also counts
        self._reply_counts[case] += 1
        seconds = watch(*arguments)
        timings.setdefault(arguments, []).append(seconds)
        return seconds
