"""Compare each rank's returned value in a case with the right value."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from helpers.checks.case import AllRanks, Case, Finding, Measured, value_for_rank
from helpers.checks.compare import describe_kind, difference, find_huge_range, kind_problem
from helpers.ranks.run import Run
from helpers.views.values import short_value

# Largest number of parts in a rank's report about itself. Each part may have a quarter of this number, and so
# on.
_MAX_PARTS = 1 << 20

# Errors that an unexpected kind of value provokes in a function judging it.
_UNEXPECTED_KIND_ERRORS = (
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    IndexError,
    MemoryError,
    RuntimeError,
)


class JudgeFailed(Exception):
    """An exercise's function failed on a value that a rank returned. returned_value: the value, in words."""

    def __init__(self, rank: int, got: Any, error: Exception) -> None:
        got = got.found if isinstance(got, Measured) else got
        # the value lacks a key that is always in the driver's result
        missing = isinstance(error, KeyError) and isinstance(got, dict)
        self.is_odd = missing or isinstance(error, _UNEXPECTED_KIND_ERRORS)
        self.returned_value = f"rank {rank} returned {describe_kind(got)}: {short_value(got, 80)}"
        super().__init__(f"{type(error).__name__}: {str(error)[:200]}")


@dataclass(frozen=True)
class Execution:
    """One case, and the actions of its ranks.

    changed[r]: the names of the inputs changed by rank r. number: the turn's number, as in `worlds.Turn`.
    """

    case: Case
    run: Run
    changed: Sequence[Sequence[str]] = ()
    number: int = 0

    def all_findings(self) -> list[Finding | None]:
        """Return the problem with each rank's value, or None if it is right."""
        return [self._rank_finding(rank) for rank in range(self.case.world_size)]

    def joint_finding(self) -> Finding | None:
        """Return the problem with the values of all ranks together, if each value alone is right."""
        right = self.case.right
        # a single wrong value already explains why all values together are wrong
        if not isinstance(right, AllRanks) or any(self.all_findings()):
            return None
        try:
            return _to_finding(right.judge_all(list(self.run.values)))
        except Exception as error:
            raise JudgeFailed(0, self.run.values[0], error) from error

    def _rank_finding(self, rank: int) -> Finding | None:
        case, got = self.case, self.run.values[rank]
        if range_text := find_huge_range(got):
            return Finding(f"{range_text} was returned: no answer needs that many numbers")
        expected = value_for_rank(case.right, rank)
        if callable(expected) or isinstance(expected, AllRanks):
            if kind_text := kind_problem(value_for_rank(case.like, rank), got):
                return Finding(kind_text)
            try:
                problem = (
                    expected.judge_rank(got)
                    if isinstance(expected, AllRanks)
                    else expected(got, rank)
                )
            except Exception as error:
                raise JudgeFailed(rank, got, error) from error
        else:
            problem = _describe_difference(case, expected, got)
        if problem:
            return _to_finding(problem)
        if self.changed and self.changed[rank]:
            names = " and ".join(f"`{name}`" for name in self.changed[rank])
            has_key = "[" in names
            how = "`dict(x)`, or use a variable" if has_key else "`x.clone()`"
            return Finding(
                f"it modified {names} in place",
                f"The caller still needs its argument unchanged. Work on a copy, such as {how}.",
            )
        return None


def _to_finding(problem: Finding | str | None) -> Finding | None:
    return Finding(problem) if isinstance(problem, str) and problem else problem or None


def _describe_difference(case: Case, expected: Any, actual: Any) -> str:
    """Compare two values. A value that cannot even be compared counts as wrong, and raises no error."""
    try:
        text = difference(expected, actual, case.tolerance, scale=case.scale)
        return re.sub(r"^\[(\d+)\]", lambda m: _part_name(case, int(m[1])), text)
    except Exception as error:
        return f"it cannot be compared ({type(error).__name__})"


def _part_name(case: Case, number: int) -> str:
    return case.parts[number] if number < len(case.parts) else f"[{number}]"


def find_impossible_value(reported: Sequence[str], value: Any) -> Finding | None:
    """Return a finding if a rank's report about itself cannot be a count, a time or a string."""
    for name in reported if isinstance(value, dict) else ():
        if name in value and not _is_plausible(value[name], _MAX_PARTS):
            text = f"it reported an impossible value for {name!r}: {short_value(value[name], 60)}"
            return Finding(text)
    return None


def _is_plausible(value: Any, max_parts: int) -> bool:
    """Return whether a value is a string, a count, a time, or at most `max_parts` of these."""
    if isinstance(value, (list, tuple, dict)):
        parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        return len(parts) <= max_parts and all(
            _is_plausible(part, max_parts // 4) for part in parts
        )
    if isinstance(value, float):
        return math.isfinite(value) and value >= 0
    if isinstance(value, int):
        # -1 represents a timeout that was not passed, or a row that does not exist
        return -1 <= value < 1 << 60
    return value is None or isinstance(value, str)
