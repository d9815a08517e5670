"""Prove every file of answers: right answers pass, and wrong ones fail as stated in the file.

`make prove` tries all answers on visible and on hidden cases, and `.ci/run` tries those of a sixth of the
exercises each day, on visible cases. `make test` reads the files, and grades all reference solutions
elsewhere.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache

import pytest

from helpers.checks.answer_file import AnswerKind, KnownAnswer
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.known_outcomes import known_outcomes
from helpers.checks.mistakes import answers_path, known_answers
from helpers.checks.prove_answers import answer_problem
from helpers.checks.registry import exercises

HIDDEN = "a secret of the tests"
# Their cases include a sharded layer on one rank, which keeps its gradients and trains x.
RARE = ("secret 2", "secret 3")
# A proof of 23.3 takes a minute of two cores.
PROOF_S = 900

# Preload DTensor, FSDP and similar modules, whose import takes a second, as a server in use has done
pytestmark = pytest.mark.usefixtures("preloaded")

PART, PARTS = map(int, os.environ.get("PROVE_PART", "0/1").split("/"))
"""Which part of the exercises to try: `.ci/run` has only an hour, and tries another part each day."""


@cache
def _answers() -> list[tuple[Exercise, KnownAnswer]]:
    return [
        (exercise, known)
        for number, exercise in enumerate(exercises().values())
        if number % PARTS == PART
        for known in known_answers(exercise)
        if known.source
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests of answers, unless the run excludes them: reading all answers takes seconds."""
    mark = next(metafunc.definition.iter_markers("prove"), None) or next(
        metafunc.definition.iter_markers("soak"), None
    )
    if mark is None:
        return
    is_excluded = f"and not {mark.name}" in f"and {metafunc.config.option.markexpr}"
    name = metafunc.config.option.keyword
    pairs = [
        pytest.param(exercise, known, id=f"{exercise.name}: {known.kind.value}{known.title}")
        for exercise, known in ([] if is_excluded else _answers())
        if (name not in exercises() or exercise.name == name)
        and (mark.name == "prove" or known.kind is AnswerKind.RIGHT)
    ]
    metafunc.parametrize(("exercise", "known"), pairs)


@pytest.mark.timeout(PROOF_S)
@pytest.mark.prove
def test_visible_cases_match_answers_file(exercise: Exercise, known: KnownAnswer) -> None:
    why = answer_problem(exercise, known, VISIBLE_SECRET)
    assert not why, why


@pytest.mark.timeout(PROOF_S)
@pytest.mark.prove
def test_hidden_cases_match_answers_file(exercise: Exercise, known: KnownAnswer) -> None:
    why = answer_problem(exercise, known, HIDDEN)
    assert not why, why


@pytest.mark.soak
@pytest.mark.parametrize("secret", RARE)
def test_right_answers_pass_on_rare_cases(
    exercise: Exercise, known: KnownAnswer, secret: str
) -> None:
    why = answer_problem(exercise, known, secret)
    assert not why, why


@pytest.mark.sample(11)
@pytest.mark.parametrize("exercise", exercises().values(), ids=lambda each: each.name)
def test_answer_titles_are_unique(exercise: Exercise) -> None:
    counts = Counter(known.title for known in known_answers(exercise))
    assert [title for title, count in counts.items() if count > 1] == []
    rules = {rule.text for rule in exercise.rules}
    broken = {known.rule for known in known_answers(exercise) if known.rule}
    assert broken <= rules, (
        f"{answers_path(exercise).name} names rules that the exercise does not have"
    )
    named = {known.mistake for known in known_answers(exercise) if known.mistake}
    assert named <= {mistake.title for mistake in known_outcomes(exercise)}


@pytest.mark.parametrize("exercise", exercises().values(), ids=lambda each: each.name)
def test_each_exercise_has_enough_known_answers(exercise: Exercise) -> None:
    counts = Counter(known.kind for known in known_answers(exercise))
    assert counts[AnswerKind.MISTAKE] + counts[AnswerKind.WRONG] >= 6
    assert counts[AnswerKind.RIGHT] >= 2
