"""A stopwatch whose truth is known: what the checks of kind MEASUREMENT hand to an answer.

    Script (plain data, in a case's inputs) --Stopwatch--> measure(...) -> seconds, lap by lap

A lap lasts as long as `truth` says, and a little more: like on a real machine, nothing makes it
faster. The first lap with an argument is several times slower (warm-up); after that, one of the
first few laps and then about one in eighteen is ten times slower (another program had the core).
A median, a minimum, a trimmed mean find the truth; a plain mean, a single lap, or a first lap does
not. Nothing sleeps: a thousand laps take a millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass

FIRST_OUTLIER = (2, 5)
"""Among which laps (0 is the warm-up's) the first outlier is; so laps 1 to 5 hold exactly one."""

BETWEEN_OUTLIERS = (15, 20)


@dataclass(frozen=True)
class Script:
    """How a stopwatch misbehaves. As plain data (`astuple`) it travels in the inputs of a case.

    seed: of everything random. warm_up, outlier: how many times longer such laps last.
    noise_s: what is added to each lap is drawn evenly from 0 to this.
    """

    seed: int
    noise_s: float
    warm_up: float = 6.0
    outlier: float = 10.0


class Stopwatch:
    """Times scripted laps: call it with what shall be timed, get the seconds of one lap."""

    def __init__(self, script: Script, truth: Callable[..., float]) -> None:
        """Give the true seconds of a lap by `truth(*arguments)`."""
        self._script = script
        self._truth = truth
        self._laps: dict[Hashable, int] = {}
        self._next_outlier: dict[Hashable, int] = {}
        self._random: dict[Hashable, random.Random] = {}

    def __call__(self, *arguments: Hashable) -> float:
        rng = self._random.setdefault(
            arguments, random.Random(f"{self._script.seed}/{arguments!r}")
        )
        lap = self._laps.get(arguments, 0)
        self._laps[arguments] = lap + 1
        seconds = self._truth(*arguments) + rng.uniform(0, self._script.noise_s)
        if lap == 0:
            self._next_outlier[arguments] = rng.randint(*FIRST_OUTLIER)
            return seconds * self._script.warm_up
        if lap == self._next_outlier[arguments]:
            self._next_outlier[arguments] += rng.randint(*BETWEEN_OUTLIERS)
            return seconds * self._script.outlier
        return seconds

    @property
    def laps(self) -> dict[Hashable, int]:
        """How many laps were timed for each tuple of arguments."""
        return dict(self._laps)
