"""Every exercise is drawn from its domains: many cases, the same for one secret, of the sizes it names."""

from __future__ import annotations

import pytest

from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.registry import exercises

EXERCISES = exercises().values()


def test_every_kind_is_used() -> None:
    assert {exercise.kind for exercise in EXERCISES} == set(Kind)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_many_cases_are_drawn_always_the_same_for_a_secret(exercise: Exercise) -> None:
    cases, other = exercise.draw(), exercise.draw("another secret")
    # each start of real agents or MPI ranks takes seconds: there one case may hold a dozen
    assert len(cases) >= (2 if exercise.kind is Kind.SCRIPT else 12) and len(exercise.hints) == 3
    assert [case.label for case in cases] == [case.label for case in exercise.draw()]
    drawn = [*cases, *other] if exercise.last is None else [*cases[:-1], *other[:-1]]
    assert {case.world_size for case in drawn} <= set(exercise.sizes)
