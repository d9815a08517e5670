"""A stopwatch whose truth is known: what the checks of kind MEASUREMENT hand to an answer.

    rank: measure(n) --[case, n]--> Replies, in the launching process --Stopwatch--> seconds of one lap

What a measurement is to find never lies in the process that measures: not in what `measure` refers to,
nor anywhere else that an answer could look. The rank asks for each lap over its channel.

A lap lasts as long as `truth` says, and a little more: like on a real machine, nothing makes it
faster. The first lap with an argument is several times slower (warm-up); after that, one of the
first few laps and then about one in eighteen is ten times slower (another program had the core).
A median, a minimum, a trimmed mean find the truth; a plain mean, a single lap, or a first lap does
not. Nothing sleeps: a thousand laps take a millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

FIRST_OUTLIER = (2, 5)
"""Among which laps (0 is the warm-up's) the first outlier is; so laps 1 to 5 hold exactly one."""

BETWEEN_OUTLIERS = (15, 20)
MOST_LAPS, MOST_KINDS = 10_000, 500
"""How many laps of a case are timed, and with how many different arguments: far more than anybody needs."""


@dataclass(frozen=True)
class Script:
    """How a stopwatch misbehaves.

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
        """Return the true seconds of a lap by `truth(*arguments)`."""
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


@dataclass
class Replies:
    """Replies to the ranks of one world, which ask for laps: [case, *arguments] -> seconds.

    watches: what times the laps of each case, None where nothing is measured. What asks may be hostile:
    raise ValueError where that is no question, reply None once more was asked than anybody needs.
    """

    watches: Sequence[Callable[..., float] | None]
    laps: list[dict[tuple[int, ...], list[float]]] = field(init=False)
    """The laps that were told of each case, by their arguments."""

    def __post_init__(self) -> None:
        self.laps = [{} for _ in self.watches]
        self._told = [0 for _ in self.watches]

    def __call__(self, question: Any) -> float | None:
        if not isinstance(question, list) or any(type(n) is not int or n < 0 for n in question):
            raise ValueError("no question")
        case, arguments = question[0], tuple(question[1:])
        watch, laps = self.watches[case], self.laps[case]
        if watch is None:
            raise ValueError("nothing is measured here")
        if len(laps) >= MOST_KINDS and arguments not in laps:
            return None
        if self._told[case] >= MOST_LAPS:
            return None
        self._told[case] += 1
        seconds = watch(*arguments)
        laps.setdefault(arguments, []).append(seconds)
        return seconds
