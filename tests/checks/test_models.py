"""Exercises in the new form, of every kind, with answers that learners could write: models for the others.

`helpers/exercises/drawn` holds the content. Its answers are those of `tests/submissions`, but for what stands
in `kept/`: more answers, and other markers (alone, without a source) where the new checks have other words.
`make test` tries two of each exercise; `make soak` all of them, on visible and on hidden cases.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.checks.exercise import Exercise, read
from helpers.checks.grade import grade
from helpers.checks.kinds import Kind
from helpers.checks.result import CheckResult
from helpers.views.verdict import verdict_text
from tests.submission_files import FOLDER, PRELUDE, Sample, read_samples

HERE = Path(__file__).parent
CONTENT = Path(__file__).parents[2] / "helpers" / "exercises" / "drawn"
SHARED = {"__init__", "in_ranks", "shared"}

pytestmark = [pytest.mark.usefixtures("preloaded"), pytest.mark.timeout(240)]


def models() -> dict[str, Exercise]:
    """Give the exercises of the folder, by name."""
    found = {}
    for path in sorted(CONTENT.glob("nb*/*.py")):
        if path.stem not in SHARED:
            name = f"helpers.exercises.drawn.{path.parent.name}.{path.stem}"
            found[path.stem] = read(import_module(name))
    return found


MODELS = models()
GONE = {
    "the buffer is always float32",
    "the dense layer's own bias, sliced by hand",
    "mark_dirty, async, a zero bias that is a buffer-free None",
}
"""Titles of answers that the new checks judge in another way; `kept/` has them by other titles."""


def kept() -> list[Sample]:
    """Give the answers to the exercises of the folder."""
    found: list[Sample] = []
    for path in sorted(FOLDER.glob("*/*.py")):
        if path.stem in MODELS:
            known = {s.title: s for s in read_samples(path) if s.title not in GONE}
            more = HERE / "kept" / path.parent.name / path.name
            for sample in read_samples(more) if more.exists() else ():
                if not re.search(rf"(def|class) {sample.exercise}\b", sample.source):
                    sample = replace(sample, source=known[sample.title].source)
                known[sample.title] = sample
            found += known.values()
    return found


KEPT = kept()
FEW = [
    sample
    for sample in {(s.exercise, s.right): s for s in reversed(KEPT)}.values()
    if MODELS[sample.exercise].kind not in {Kind.SCRIPT, *([] if sample.right else [Kind.MODULE])}
]


def judged(sample: Sample, secret: str) -> CheckResult:
    answer = build_answer([PRELUDE, sample.source], sample.exercise)
    assert isinstance(answer, Answer), answer
    place = lambda index: f"cell {index}"  # noqa: E731
    return grade(MODELS[sample.exercise], answer, place, secret, every_case=False)


@pytest.mark.parametrize("sample", FEW, ids=str)
def test_right_answers_pass_and_wrong_ones_do_not(sample: Sample) -> None:
    result = judged(sample, "visible")
    assert result.passed is sample.right, verdict_text(result)


@pytest.mark.soak
@pytest.mark.parametrize("sample", KEPT, ids=str)
def test_wrong_answers_are_named(sample: Sample) -> None:
    result = judged(sample, "visible")
    text = verdict_text(result)
    assert result.outcome.value == sample.outcome, text
    assert re.search(sample.says, text), text


@pytest.mark.soak
@pytest.mark.parametrize("sample", KEPT, ids=str)
def test_hidden_cases_judge_alike(sample: Sample) -> None:
    result = judged(sample, "a secret of the tests")
    assert result.passed is sample.right, verdict_text(result)


def test_each_kind_has_a_model() -> None:
    assert {exercise.kind for exercise in MODELS.values()} == set(Kind)


@pytest.mark.parametrize("exercise", MODELS.values(), ids=lambda exercise: exercise.name)
def test_many_cases_are_drawn_always_the_same_for_a_secret(exercise: Exercise) -> None:
    cases = exercise.draw()
    assert len(cases) >= 12 and len(exercise.hints) == 3
    assert [case.label for case in cases] == [case.label for case in exercise.draw()]
    assert {case.world_size for case in cases} <= {*exercise.sizes, 2}
