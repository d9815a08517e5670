"""List the demands of each task next to their tests."""

from __future__ import annotations

import pytest

from helpers.checks.exercise import Exercise
from helpers.checks.registry import exercises, get
from helpers.checks.task_sentences import (
    demanding_sentences,
    list_sentences_and_tests,
    read_task,
)


@pytest.mark.parametrize("exercise", exercises().values(), ids=lambda each: each.name)
def test_finds_demands_of_each_task(exercise: Exercise) -> None:
    assert demanding_sentences(read_task(exercise))


def test_lists_sentences_next_to_tests() -> None:
    text = list_sentences_and_tests(get("HookedDDP"))
    assert "A program may wrap several modules" in text
    assert "second wrapper finished last" in text
    assert "the list of parameters belongs to the class" in text
