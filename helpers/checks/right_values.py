"""Find the right values of cases by running the reference solution.

    Exercise.draw --cases--> separate worlds: the reference's source --each rank's value--> Case.right

The reference runs before any answer, and never on a rank server used by answers, so no answer can influence
it. Its results for the cases of a secret are kept, so a second check of the exercise needs no worlds for
them.
"""

from __future__ import annotations

import bz2
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from helpers.checks.case import Case, PerRank
from helpers.checks.compare import same
from helpers.checks.draw import plan_small_draws
from helpers.checks.execution import Execution
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.kinds import Kind
from helpers.checks.mistakes import answers_path, solution_of
from helpers.checks.named_parts import NamedParts, Parts, largest
from helpers.checks.worlds import Flooded, Turn, Worlds
from helpers.ranks.connection import Servers

ADVICE_SECRET = "to tell mistakes apart"
"""Secret of additional cases that distinguish two known mistakes."""
SEALED_REFERENCE = ".reference"
LOW_CASES = 8
"""Number of small cases of one world size that a check tries after an answer has failed."""
LOW_CALLS = 60
"""The number of such cases for a pure function, whose calls take almost no time."""
CaseSet = tuple[str, str]
"""A set of cases, given by the secret and a kind.

The kinds are "" for all cases, "small 2" for the cases of two ranks with small numbers, "low 2" for small
cases.
"""
_MAX_CASES_PER_WORLD = 24
"""Largest number of cases in one world. With many more, a slow case might use up the world's time."""
_reference_values: dict[tuple[str, str, Callable[..., Case], CaseSet], list[Any]] = {}
_needs_reference: dict[tuple[str, Callable[..., Case]], bool] = {}


@dataclass(frozen=True)
class Reference:
    """A placeholder in `Case.right` for the reference's values. scale, advice, unused: see `NamedParts`.

    margin: without a scale, the scale is `margin` times the largest returned number. ignore: parts that are
    not judged.
    """

    scale: float | Mapping[str, float] | None = None
    advice: Callable[[str, Parts], str] | Mapping[str, str] | None = None
    margin: float | None = None
    unused: frozenset[str] = frozenset()
    ignore: tuple[str, ...] = ()

    def right(self, values: Sequence[Any]) -> PerRank | NamedParts:
        """Return the judge of an answer, given the reference's value on each rank."""
        if not all(isinstance(value, dict) for value in values):
            return PerRank(values)
        parts = [
            {name: value for name, value in rank_values.items() if name not in self.ignore}
            for rank_values in values
        ]
        scale = self.margin * (largest(*parts) or 1.0) if self.margin else self.scale
        return NamedParts(parts, scale, self.advice, self.unused)

    def same(self, one: Any, other: Any, rank: int) -> bool:
        """Return whether two programs returned the same values; used while the right values are unknown."""
        right = self.right([one])
        return right.same(one, other, 0) if isinstance(right, NamedParts) else same(one, other)


def draw(exercise: Exercise, secret: str, *, own_server: bool = True) -> tuple[Case, ...]:
    """Draw the cases with a secret, and fill in the reference's values. Raise CheckFault.

    own_server: whether the reference may run on this process's rank server. If not, call `run_reference`
    first.
    """
    return fill_case_set(exercise, (secret, ""), own_server=own_server)


def fill_case_set(
    exercise: Exercise, case_set: CaseSet, *, own_server: bool = True
) -> tuple[Case, ...]:
    """Draw the cases of a set, and fill in the reference's values, like `draw`."""
    cases = _draw_cases(exercise, case_set)
    if not any(isinstance(case.right, Reference) for case in cases):
        return tuple(cases)
    key = _case_set_key(exercise, case_set)
    if key not in _reference_values:
        if not own_server:
            raise CheckFault("the reference solution was not run on these cases")
        run_reference(exercise, [case_set])
    return tuple(
        replace(case, right=right)
        for case, right in zip(cases, _reference_values[key], strict=True)
    )


def case_sets_of(exercise: Exercise, secret: str) -> list[CaseSet]:
    """Return all sets of cases that a check with this secret may draw."""
    # No small hidden cases are drawn, because results do not show which hidden case failed
    if secret != VISIBLE_SECRET:
        return [(secret, "")]
    sizes = sorted({case.world_size for case in exercise.draw()})
    easier_sets = [(secret, f"{kind} {size}") for kind in ("small", "low") for size in sizes]
    return [(secret, ""), (ADVICE_SECRET, ""), *easier_sets]


def missing_sets(exercise: Exercise, sets: Iterable[CaseSet]) -> list[CaseSet]:
    """Return the sets of cases on which the reference must still run; empty if no case needs it."""
    if not needs_reference(exercise):
        return []
    return [
        case_set for case_set in sets if _case_set_key(exercise, case_set) not in _reference_values
    ]


def run_reference(
    exercise: Exercise, sets: Iterable[CaseSet], connection: Servers | None = None
) -> None:
    """Run the reference on sets of cases, and keep its values. Raise CheckFault if it fails."""
    worlds = Worlds(exercise, [reference_source(exercise)], connection=connection)
    drawn_cases = {case_set: _draw_cases(exercise, case_set) for case_set in sets}
    turns: dict[int, list[Turn]] = {}
    for cases in drawn_cases.values():
        for size, group in groupby(cases, key=lambda case: case.world_size):
            numbered = (Turn(case, number) for number, case in enumerate(group))
            turns.setdefault(size, []).extend(numbered)
    right: dict[int, Any] = {}
    # use one world for all sets, because starting a world takes most of the time
    for size_turns in turns.values():
        for start in range(0, len(size_turns), _MAX_CASES_PER_WORLD):
            batch = size_turns[start : start + _MAX_CASES_PER_WORLD]
            pairs = zip(batch, _run_reference_batch(worlds, batch), strict=True)
            right |= {id(turn.case): case_set for turn, case_set in pairs}
    for case_set, cases in drawn_cases.items():
        _reference_values[_case_set_key(exercise, case_set)] = [right[id(case)] for case in cases]


def _draw_cases(exercise: Exercise, case_set: CaseSet) -> Sequence[Case]:
    secret, kind = case_set
    name, _, size = kind.partition(" ")
    if name == "low":
        count = LOW_CALLS if exercise.kind is Kind.LOCAL else LOW_CASES
        draws = plan_small_draws(int(size), count, f"low/{exercise.name}")
        return [exercise.case(each) for each in draws]
    cases = exercise.draw(secret, small=name == "small")
    return [case for case in cases if not size or case.world_size == int(size)]


def _run_reference_batch(worlds: Worlds, turns: Sequence[Turn]) -> list[Any]:
    """Run the reference on cases of one size, in one world if possible."""
    try:
        may_share = len(turns) > 1 and all(turn.may_share for turn in turns)
        shared = worlds.run_turns(turns) if may_share else None
        executions = shared[0] if shared is not None else [worlds.run_alone(turn) for turn in turns]
    except Flooded:
        raise CheckFault("the reference solution makes too many calls") from None
    # a failure may be due to a busy machine, so each case is tried again in a separate world
    executions = [
        worlds.run_alone(turn) if _reference_problem(worlds, execution) else execution
        for turn, execution in zip(turns, executions, strict=True)
    ]
    return [_make_judge(worlds, execution) for execution in executions]


def _make_judge(worlds: Worlds, execution: Execution) -> Any:
    """Return the judge of a case, given the reference's execution."""
    if problem := _reference_problem(worlds, execution):
        raise CheckFault(
            f"the reference solution fails in the case {execution.case.label}: {problem}"
        )
    placeholder = execution.case.right
    return (
        placeholder.right(execution.run.values)
        if isinstance(placeholder, Reference)
        else placeholder
    )


def _reference_problem(worlds: Worlds, execution: Execution) -> str:
    """Return the reference's problem according to the report of its ranks."""
    placeholder, reported = execution.case.right, worlds.exercise.reported
    if execution.run.failure is not None:
        return str(execution.run.failure)
    judged_parts = [name for name in reported if name not in getattr(placeholder, "ignore", ())]
    reports = (
        rank_value.get(name)
        for rank_value in execution.run.values
        if isinstance(rank_value, dict)
        for name in judged_parts
    )
    return next((text for text in reports if isinstance(text, str) and text), "")


def _case_set_key(
    exercise: Exercise, case_set: CaseSet
) -> tuple[str, str, Callable[..., Case], CaseSet]:
    # include the source in the key, because a changed solution is a different reference
    return exercise.name, reference_source(exercise), exercise.case, case_set


# --- finding the reference ------------------------------------------------------------------------


def needs_reference(exercise: Exercise) -> bool:
    """Return whether only the reference solution defines the right values of this exercise's cases."""
    key = exercise.name, exercise.case
    if key not in _needs_reference:
        _needs_reference[key] = any(isinstance(case.right, Reference) for case in exercise.draw())
    return _needs_reference[key]


def reference_source(exercise: Exercise) -> str:
    """Return the source of the reference solution and its parts. Raise CheckFault if there is no solution."""
    path = answers_path(exercise)
    try:
        return solution_of(path).source
    except ValueError as error:
        # a learner's bundle has only the sealed file
        sealed_path = path.with_suffix(SEALED_REFERENCE)
        if not sealed_path.is_file():
            raise CheckFault(str(error)) from None
        return str(json.loads(bz2.decompress(sealed_path.read_bytes())))


def seal_reference(source: str) -> bytes:
    """Compress a reference solution for a learner's bundle, so that opening the file reveals nothing."""
    return bz2.compress(json.dumps(source).encode())
