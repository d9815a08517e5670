"""Every kept answer is judged as a teacher would judge it, with a message that names its cause."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from helpers.exercises.answers import Answer, build_answer
from helpers.exercises.grade import grade
from helpers.exercises.model import exercises, get
from helpers.exercises.result import CheckResult
from helpers.views.verdict import verdict_text
from tests.submission_files import PRELUDE, Sample, all_samples

HIDDEN = "a secret of the tests"

# DTensor, FSDP and the like take a second to import: a rank server in use has done so long ago
pytestmark = pytest.mark.usefixtures("preloaded")


def judged(sample: Sample, secret: str) -> CheckResult:
    """Judge a sample up to the first case that fails: hundreds of them must take minutes, not hours."""
    answer = build_answer([PRELUDE, sample.source], sample.exercise)
    assert isinstance(answer, Answer), answer
    exercise = get(sample.exercise)
    return grade(exercise, answer, lambda index: f"cell {index}", secret, every_case=False)


RIGHT = [sample for sample in all_samples() if sample.right]
FIRST = list({sample.exercise: sample for sample in reversed(RIGHT)}.values())
"""One right answer to each exercise."""


@pytest.mark.parametrize("sample", RIGHT, ids=str)
def test_right_answers_pass(sample: Sample) -> None:
    result = judged(sample, "visible")
    assert result.passed, verdict_text(result)


@pytest.mark.parametrize("sample", FIRST, ids=str)
def test_a_right_answer_to_each_exercise_passes_on_hidden_cases(sample: Sample) -> None:
    result = judged(sample, HIDDEN)
    assert result.passed, verdict_text(result)


@pytest.mark.soak
@pytest.mark.parametrize("sample", [s for s in RIGHT if s not in FIRST], ids=str)
def test_all_other_right_answers_pass_on_hidden_cases_too(sample: Sample) -> None:
    result = judged(sample, HIDDEN)
    assert result.passed, verdict_text(result)


@pytest.mark.parametrize("sample", [s for s in all_samples() if not s.right], ids=str)
def test_wrong_answers_fail_and_the_message_names_the_cause(sample: Sample) -> None:
    result = judged(sample, "visible")
    text = verdict_text(result)
    assert result.outcome.value == sample.outcome, text
    assert re.search(sample.says, text), text


@pytest.mark.soak
@pytest.mark.parametrize("sample", [s for s in all_samples() if not s.right], ids=str)
def test_wrong_answers_fail_on_hidden_cases_too(sample: Sample) -> None:
    assert not judged(sample, HIDDEN).passed


def test_every_exercise_has_four_wrong_and_two_right_answers() -> None:
    counts = Counter((sample.exercise, sample.right) for sample in all_samples())
    for name in exercises():
        assert counts[name, False] >= 4, name
        assert counts[name, True] >= 2, name


def test_every_sample_belongs_to_an_exercise_of_its_notebook() -> None:
    for sample in all_samples():
        assert get(sample.exercise).notebook == sample.notebook, sample
