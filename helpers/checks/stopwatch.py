"""A stopwatch whose truth is known: what the checks of kind MEASUREMENT hand to an answer.

    rank: measure(n) --[case, n]--> Replies, in the launching process --Stopwatch--> seconds of one timing

What a measurement is to find is never in the process that measures: not in what `measure` refers to,
nor anywhere else that an answer could look. The rank asks for each timing over its channel.

A timing lasts as long as `truth` says, and a little more: like on a real machine, nothing makes it
faster. The first timing with an argument is several times slower (warm-up); after that, one of the
first few timings and then about one in eighteen is ten times slower (another program had the core).
A median, a minimum, a trimmed mean find the truth; a plain mean, a single timing, or a first timing does
not. Nothing sleeps: a thousand timings take a millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

FIRST_OUTLIER = (2, 5)
"""Among which timings (0 is the warm-up's) the first outlier is; so timings 1 to 5 hold exactly one."""

BETWEEN_OUTLIERS = (15, 20)
MOST_TIMINGS, MOST_KINDS = 10_000, 500
"""How many timings a case has, and with how many different arguments: far more than anybody needs."""


@dataclass(frozen=True)
class Script:
    """How a stopwatch misbehaves.

    seed: of everything random. warm_up, outlier: how many times longer such timings last.
    noise_s: what is added to each timing is drawn evenly from 0 to this.
    """

    seed: int
    noise_s: float
    warm_up: float = 6.0
    outlier: float = 10.0


class Stopwatch:
    """Times scripted timings: call it with what shall be timed, get the seconds of one timing."""

    def __init__(self, script: Script, truth: Callable[..., float]) -> None:
        """Return the true seconds of a timing by `truth(*arguments)`."""
        self._script = script
        self._truth = truth
        self._timings: dict[Hashable, int] = {}
        self._next_outlier: dict[Hashable, int] = {}
        self._random: dict[Hashable, random.Random] = {}

    def __call__(self, *arguments: Hashable) -> float:
        # of its own for each argument: what is asked in between changes nothing
        rng = self._random.setdefault(
            arguments, random.Random(f"{self._script.seed}/{arguments!r}")
        )
        timing = self._timings.get(arguments, 0)
        self._timings[arguments] = timing + 1
        # added, never taken away: nothing makes a machine faster than it is
        seconds = self._truth(*arguments) + rng.uniform(0, self._script.noise_s)
        # the first outlier comes early, so that a learner who takes a few timings meets one
        if timing == 0:
            self._next_outlier[arguments] = rng.randint(*FIRST_OUTLIER)
            return seconds * self._script.warm_up
        if timing == self._next_outlier[arguments]:
            self._next_outlier[arguments] += rng.randint(*BETWEEN_OUTLIERS)
            return seconds * self._script.outlier
        return seconds

    @property
    def timings(self) -> dict[Hashable, int]:
        """How many timings were made for each tuple of arguments."""
        return dict(self._timings)


@dataclass
class Replies:
    """Replies to the ranks of one world, which ask for timings: [case, *arguments] -> seconds.

    watches: what times the timings of each case, None where nothing is measured. What asks may be hostile:
    raise ValueError where that is not a valid question, reply None once more was asked than anybody needs.
    """

    watches: Sequence[Callable[..., float] | None]
    timings: list[dict[tuple[int, ...], list[float]]] = field(init=False)
    """The timings that each case has asked for, by their arguments."""

    def __post_init__(self) -> None:
        self.timings = [{} for _ in self.watches]
        self._told = [0 for _ in self.watches]

    def __call__(self, question: Any) -> float | None:
        # `type(n) is not int`: True would be taken for 1
        if not isinstance(question, list) or any(type(n) is not int or n < 0 for n in question):
            raise ValueError("no question")
        case, arguments = question[0], tuple(question[1:])
        watch, timings = self.watches[case], self.timings[case]
        if watch is None:
            raise ValueError("nothing is measured here")
        # what was asked is kept, for the judge to see: a hostile rank must not fill the launcher's memory
        if len(timings) >= MOST_KINDS and arguments not in timings:
            return None
        if self._told[case] >= MOST_TIMINGS:
            return None
        # counted before it is made: one that fails counts as well
        self._told[case] += 1
        seconds = watch(*arguments)
        timings.setdefault(arguments, []).append(seconds)
        return seconds
