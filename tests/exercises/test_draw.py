"""Test the cases of every exercise: their number, their dependence on the secret, and their world sizes."""

from __future__ import annotations

import re
from functools import cache

import pytest

from helpers.checks.case import Case
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.mistakes import known_mistakes
from helpers.checks.registry import exercises, get

EXERCISES = exercises().values()


@cache
def visible(name: str) -> tuple[Case, ...]:
    return get(name).draw()


def test_exercises_use_every_kind() -> None:
    assert {exercise.kind for exercise in EXERCISES} == set(Kind)


@pytest.mark.sample(20)
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_draws_depend_only_on_secret(exercise: Exercise) -> None:
    cases, other = visible(exercise.name), exercise.draw("another secret")
    # each start of real agents or MPI ranks takes seconds, so one case may contain a dozen starts
    assert len(cases) >= (2 if exercise.kind is Kind.SCRIPT else 12) and len(exercise.hints) == 3
    assert [case.label for case in cases] == [case.label for case in exercise.draw()]
    drawn = [*cases, *other] if exercise.last is None else [*cases[:-1], *other[:-1]]
    assert {case.world_size for case in drawn} <= set(exercise.sizes)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_messages_use_only_existing_facts(exercise: Exercise) -> None:
    """`{n}` in a message is the world size, `{src}` is a fact. A fact that no case has is not replaced."""
    cases = visible(exercise.name)
    words = {each.advice for each in exercise.failed}
    words |= {mistake.words for mistake in known_mistakes(exercise)}
    told = {said: [case.fill_facts(said) for case in cases] for said in words}
    unknown = [said for said, each in told.items() if all("{" in filled for filled in each)]
    written = re.compile(r"\{(?!rank\b)\w+\}")  # f"{rank}" is Python, too
    assert not [said for said in unknown if written.search(said)]
