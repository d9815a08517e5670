"""Is (start, stop) of every rank a fair division of n elements? Used by checks of slices.

value of one rank  --within(n)-->  "" or what is wrong with it alone
values of all      --judge_slices(n, run)-->  "" or: a gap, an overlap, unequal lengths
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from helpers.ranks.run import Run

Slice = tuple[int, int]


def within(n: int) -> Callable[[Any], str]:
    """Make what is expected of one rank alone: a pair of whole numbers between 0 and n."""

    def problem(got: Any) -> str:
        if got is None:
            return "nothing was returned"
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            return "this is not a pair (start, stop)"
        pair = pair_of(got)
        if pair is None:
            return "start and stop must be whole numbers: `//` divides without a fraction"
        start, stop = pair
        if start > stop:
            return f"start {start} is after stop {stop}; an empty slice has start == stop"
        return "" if start >= 0 and stop <= n else f"the slice leaves 0 to {n}"

    return problem


def pair_of(got: Any) -> Slice | None:
    """Give what a rank returned as a pair of ints, or None if it is none."""
    try:
        return index(got[0]), index(got[1])
    except (TypeError, ValueError, LookupError):
        return None


def judge_slices(n: int, run: Run) -> str:
    """Judge all slices together: "" or the first thing that is wrong, and every slice."""
    slices = _slices(run, n)
    if not slices:
        return ""
    problem = _cover_problem(slices, n) or _balance_problem(slices)
    listed = ", ".join(f"rank {rank} {pair}" for rank, pair in enumerate(slices))
    return f"{problem}\nThe slices: {listed}." if problem else ""


def _slices(run: Run, n: int) -> list[Slice]:
    """Give the slice of each rank; none at all where a rank's own row says what is wrong."""
    problem_alone = within(n)
    if any(problem_alone(value) for value in run.values):
        return []
    return [(index(value[0]), index(value[1])) for value in run.values]


def _cover_problem(slices: Sequence[Slice], n: int) -> str:
    owners: list[list[int]] = [[] for _ in range(n)]
    for rank, (start, stop) in enumerate(slices):
        for element in range(start, stop):
            owners[element].append(rank)
    for element, ranks in enumerate(owners):
        if not ranks:
            return f"Element {element} is in no slice."
        if len(ranks) > 1:
            return f"Element {element} is in the slices of ranks {' and '.join(map(str, ranks))}."
    return ""


def _balance_problem(slices: Sequence[Slice]) -> str:
    lengths = [stop - start for start, stop in slices]
    if max(lengths) - min(lengths) > 1:
        return f"The lengths are {', '.join(map(str, lengths))}: they may differ by 1 at most."
    return ""


def covers(slices: Sequence[Slice], n: int) -> bool:
    """Tell whether each of n elements is in exactly one slice, whatever the slices' lengths."""
    inside = all(0 <= start <= stop <= n for start, stop in slices)
    return inside and not _cover_problem(slices, n)
