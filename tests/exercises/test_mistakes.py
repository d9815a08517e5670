"""Every known mistake is rejected, on visible and on hidden cases, and its author reads its own sentence."""

from __future__ import annotations

import pytest

from helpers.checks.exercise import Exercise
from helpers.checks.mistakes import KnownMistake, known_mistakes
from helpers.checks.proof import prove
from helpers.checks.registry import exercises
from tests.exercises.test_submissions import HIDDEN

pytestmark = pytest.mark.usefixtures("preloaded")

ALL = [(each, mistake) for each in exercises().values() for mistake in known_mistakes(each)]
FIRST = {id(known_mistakes(each)[0]) for each in exercises().values() if known_mistakes(each)}
"""To each exercise one; `make soak` proves the others."""


def often(pairs: list[tuple[Exercise, KnownMistake]]) -> list[object]:
    return [
        pytest.param(
            *pair,
            id=f"{pair[0].name}: {pair[1].title}",
            marks=() if id(pair[1]) in FIRST else pytest.mark.soak,
        )
        for pair in pairs
    ]


@pytest.mark.parametrize(("exercise", "mistake"), often(ALL))
def test_a_mistake_is_rejected_with_its_own_sentence(
    exercise: Exercise, mistake: KnownMistake
) -> None:
    proof = prove(exercise, mistake, every_case=False)
    assert proof.is_rejected, f"{proof.outcome}, not {mistake.outcome.value}"
    assert proof.is_own, f"{proof.advice or 'no advice'!r} in place of {mistake.words!r}"


@pytest.mark.soak
@pytest.mark.parametrize(("exercise", "mistake"), often(ALL))
def test_a_mistake_is_rejected_on_hidden_cases(exercise: Exercise, mistake: KnownMistake) -> None:
    assert prove(exercise, mistake, HIDDEN, every_case=False).failed


@pytest.mark.parametrize("exercise", exercises().values(), ids=lambda each: each.name)
def test_titles_are_unique(exercise: Exercise) -> None:
    titles = [mistake.title for mistake in known_mistakes(exercise)]
    assert len(titles) == len(set(titles))
