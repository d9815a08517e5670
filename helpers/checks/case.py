"""Define one world for trying an answer: the inputs of each rank, and the right result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch


@dataclass(frozen=True)
class PerRank:
    """A value that differs from rank to rank: values[r] belongs to rank r."""

    values: Sequence[Any]


@dataclass(frozen=True)
class Finding:
    """The difference of one rank's value, as a fact, with advice if the cause is known.

    advice: a sentence, or several sentences that each explain the difference. rests_on_time: whether only a
    clock showed the difference, so that a busy machine might be the cause. seen: for a script exercise, the
    names of the observations by which `known_outcomes` recognizes a mistake.
    """

    what: str
    advice: str | tuple[str, ...] = ()
    rests_on_time: bool = False
    seen: tuple[str, ...] = ()


class Measured(NamedTuple):
    """An answer's result computed from timings, and all timings that it received, by their arguments."""

    found: Any
    timings: Mapping[tuple[int, ...], Sequence[float]]


Judge = Callable[[Any, int], "Finding | str | None"]
"""A function called with a rank's returned value and the rank; it returns the problem, if any."""


@dataclass(frozen=True)
class AllRanks:
    """Judges each rank's value with `judge_rank`; if all are right, judges them together with `judge_all`."""

    judge_rank: Callable[[Any], Finding | str | None]
    judge_all: Callable[[list[Any]], Finding | str | None]


@dataclass(frozen=True)
class Case:
    """One world: its ranks' inputs, and the values that they must return.

    label: a few words distinguishing this case from other cases of the same size ("from rank 2"). given[r]:
    extra arguments for rank r, after (rank, world_size). `given` has one entry per rank. right: a value to be
    compared part by part, a `PerRank`, a `Judge` or an `AllRanks`. Judges are called only for values with the
    types and keys of `like`. facts: numbers of this case that rules and sentences use. tolerance: the largest
    allowed difference, relative to `scale` (by default the largest element of the right value). 0 requires
    the same bits. The default allows the rounding error of a sum over some ranks in the dtype. seconds: the
    limit on the processor time of all of its ranks together. timings: for kind MEASUREMENT,
    `timings()(*arguments)` returns a timing, and the check judges a `Measured`. shown: a description of the
    inputs, if `given` is a plan for the check's driver. telling: False if mistakes are harder to see than in
    other cases, for example with a share of 0 or a grid of one row. Such a case is shown only if all other
    cases pass. parts: names of the parts of the returned value, if the values do not show which part is
    which.
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
        """Return the case's size for a reader: ranks, then elements. A single rank counts as the maximum."""
        # with one rank no messages are sent, so a failing case of two ranks shows more of the mistake
        ranks = self.world_size if self.world_size > 1 else 1 << 20
        return ranks, sum(_count_elements(value) for part in self.given for value in part)

    @property
    def reading_order(self) -> tuple[bool, tuple[int, int]]:
        """Return a sort key for the difficulty of reading: small cases come first, degenerate cases last."""
        return not self.telling or self._is_degenerate, self.size

    @property
    def _is_degenerate(self) -> bool:
        """Return whether a tensor is empty, no tensor has two elements, or ranks get equal data or zeros."""
        tensors_by_rank = [list(_tensors_in(part)) for part in self.given]
        tensors = [tensor for part in tensors_by_rank for tensor in part]
        if not tensors:
            return False
        sizes = [tensor.numel() for tensor in tensors]
        if min(sizes) == 0 or max(sizes) == 1 or not any(bool(tensor.any()) for tensor in tensors):
            return True
        return len(tensors_by_rank) > 1 and all(
            _are_equal(tensors_by_rank[0], part) for part in tensors_by_rank[1:]
        )

    def fill_facts(self, sentence: str) -> str:
        """Insert the facts of this case into a sentence."""
        known = {"n": self.world_size, **self.facts}
        # do not use str.format: words may contain code with braces, and an unknown name must not raise an
        # error
        return re.sub(r"\{(\w+)\}", lambda m: str(known.get(m[1], m[0])), sentence)


def value_for_rank(value: Any, rank: int) -> Any:
    """Return one rank's part of a value."""
    return value.values[rank] if isinstance(value, PerRank) else value


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a value, and in its parts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(part)


def _are_equal(tensors: Sequence[torch.Tensor], other_tensors: Sequence[torch.Tensor]) -> bool:
    return len(tensors) == len(other_tensors) and all(map(torch.equal, tensors, other_tensors))


def _count_elements(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, (list, tuple)):
        return sum(map(_count_elements, value))
    return _count_elements(list(value.values())) if isinstance(value, dict) else 1
