"""Recognize known mistakes of script exercises by observations in their runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.check_result import CheckResult
from helpers.checks import mistakes
from helpers.checks.case import Case, Finding
from helpers.checks.check_answer import grade
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.known_outcomes import known_outcomes
from helpers.checks.mistakes import known_answers
from helpers.checks.registry import get
from tests.checks.script_programs import start

NAMES = (
    "async_checkpoint",
    "checkpoint_and_resume",
    "quorum",
    "resume_exactly",
    "shrink_and_go_on",
    "survive_restarts",
)
ENTRIES = """# %% a sum is missing | seen: own rank
# Call `all_reduce` on all of the {n} ranks.

# %% a rank fails | seen: raised ValueError
# Raise nothing.
"""
TOTAL = "import os\ndef total(nproc):\n    "


def check_wrong(answer: str, seen: dict[int, tuple[str, ...]]) -> CheckResult:
    """Check an answer whose rank r is always wrong, with the observations `seen`."""
    exercise = Exercise(
        lambda draw: Case(
            "two ranks",
            [("fork", 2)] * 2,
            right=lambda got, rank: Finding("it is wrong", seen=seen[rank]),
            like=0,
            seconds=14,
        ),
        kind=Kind.SCRIPT,
        driver=start,
        count=1,
    )
    found = build_answer([TOTAL + answer], "total")
    assert isinstance(found, Answer), found
    named = replace(exercise, name="total", notebook="99_none")
    return grade(named, found, lambda index: f"cell {index}")


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "nb99_none"
    folder.mkdir()
    (folder / "total.answers").write_text(ENTRIES)
    monkeypatch.setattr(mistakes, "_EXERCISES", tmp_path)


@pytest.mark.usefixtures("entries")
def test_recognizes_observation_shared_by_wrong_ranks() -> None:
    result = check_wrong("return 1", {0: ("own rank",), 1: ("another", "own rank")})
    assert result.mistake == "a sum is missing"
    assert result.cases[0].advice == "Call `all_reduce` on all of the 2 ranks."


@pytest.mark.usefixtures("entries")
def test_ignores_observation_of_one_wrong_rank() -> None:
    result = check_wrong("return 1", {0: ("own rank",), 1: ()})
    assert result.mistake == "" and result.cases[0].advice == ""


@pytest.mark.usefixtures("entries")
def test_recognizes_failed_run_by_exception() -> None:
    result = check_wrong("raise ValueError('no')", {})
    assert result.mistake == "a rank fails"


@pytest.mark.parametrize("name", NAMES)
def test_titles_are_unique(name: str) -> None:
    titles = [entry.title for entry in known_outcomes(get(name))]
    assert len(set(titles)) == len(titles) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_known_outcomes_have_programs(name: str) -> None:
    exercise = get(name)
    titles = {entry.title for entry in known_outcomes(exercise)}
    named = {known.mistake for known in known_answers(exercise)} - {""}
    assert named <= titles
    shown = {known.title for known in known_answers(exercise) if known.seen and known.source}
    assert len(named | shown) >= 8, "make prove runs each of these, and it must be recognized"
