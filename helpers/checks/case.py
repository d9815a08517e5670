"""One world on which an answer is tried: what each rank is given, and what is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch


@dataclass(frozen=True)
class Each:
    """What differs from rank to rank: values[r] belongs to rank r."""

    values: Sequence[Any]


@dataclass(frozen=True)
class Finding:
    """What differs in one rank's value, as a fact; and what to do, where the cause is known.

    advice: a sentence, or several of which each explains what differs. rests_on_time: it was found by a clock
    alone, so that a busy machine may be the cause. seen: of a script exercise, the names of what was
    observed, by which `known_outcomes` recognizes a mistake.
    """

    what: str
    advice: str | tuple[str, ...] = ()
    rests_on_time: bool = False
    seen: tuple[str, ...] = ()


class Measured(NamedTuple):
    """What an answer found by measuring, and all timings that it got, by what it asked for."""

    found: Any
    timings: Mapping[tuple[int, ...], Sequence[float]]


Judge = Callable[[Any, int], "Finding | str | None"]
"""From what a rank gave back, and its rank, to what is wrong with it, if anything."""


@dataclass(frozen=True)
class AllRanks:
    """Judges each rank's value by itself, `own`, and where nothing is wrong those of all ranks `together`."""

    own: Callable[[Any], Finding | str | None]
    together: Callable[[list[Any]], Finding | str | None]


@dataclass(frozen=True)
class Case:
    """One world: its ranks' inputs, and what they must give back.

    label: a few words that tell it from others of its size ("from rank 2").
    given[r]: what rank r is given after rank and world_size; so its length is the world size.
    right: a value, compared part by part, `Each`, or a `Judge` or `AllRanks`, which are asked only where a
    rank gave back something of the types and keys of `like`.
    facts: numbers of this case that rules and words speak of.
    tolerance: largest difference relative to `scale`, by default the largest element of what is right; 0
    for the same bits; by default what a sum over some ranks loses in the dtype at hand.
    seconds: of processor time that all its ranks together may need.
    timings: for kind MEASUREMENT, makes what answers a timing, `timings()(*arguments)`; the check then
        judges a `Measured`.
    shown: what the ranks are given, in words, where `given` is the check's own plan.
    telling: False if other cases show more of a mistake, as a share of 0 or a grid of one row does. Such a
        case is shown only if no other fails.
    parts: names of the parts of what is returned, if their values do not say which they are.
    """

    label: str
    given: Sequence[tuple[Any, ...]]
    right: Any
    facts: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float | None = None
    scale: float | None = None
    like: Any = None
    env: Mapping[str, str] | Sequence[Mapping[str, str]] | None = None
    init: bool = True
    seconds: float = 10.0
    timings: Callable[[], Callable[..., float]] | None = None
    shown: str | None = None
    telling: bool = True
    parts: Sequence[str] = ()

    @property
    def world_size(self) -> int:
        return len(self.given)

    @property
    def size(self) -> tuple[int, int]:
        """How large it is to look at: ranks, then elements; a single rank shows least."""
        # with one rank nothing is sent: where two ranks fail as well, they show more of what is wrong
        ranks = self.world_size if self.world_size > 1 else 1 << 20
        return ranks, sum(_elements(value) for part in self.given for value in part)

    @property
    def reading(self) -> tuple[bool, tuple[int, int]]:
        """How hard a mistake is to see in it: the smallest case is the easiest, unless it is degenerate."""
        return not self.telling or self._is_degenerate, self.size

    @property
    def _is_degenerate(self) -> bool:
        """Whether a tensor is empty, none has two elements, or all ranks are given the same or zeros."""
        ranks = [list(_tensors(part)) for part in self.given]
        every = [x for part in ranks for x in part]
        if not every:
            return False
        sizes = [x.numel() for x in every]
        if min(sizes) == 0 or max(sizes) == 1 or not any(bool(x.any()) for x in every):
            return True
        return len(ranks) > 1 and all(_equal(ranks[0], part) for part in ranks[1:])

    def say(self, words: str) -> str:
        """Fill the facts of this case into words."""
        known = {"n": self.world_size, **self.facts}
        # not str.format: words may hold code with braces of its own, and an unknown name must not raise
        return re.sub(r"\{(\w+)\}", lambda m: str(known.get(m[1], m[0])), words)


def for_rank(value: Any, rank: int) -> Any:
    """Return what a value says of one rank."""
    return value.values[rank] if isinstance(value, Each) else value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a value, and in its parts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part)


def _equal(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


def _elements(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, (list, tuple)):
        return sum(map(_elements, value))
    return _elements(list(value.values())) if isinstance(value, dict) else 1
