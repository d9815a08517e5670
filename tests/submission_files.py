"""Answers like those handed in by learners, taken from the exercises' files of answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from helpers.checks.answer_file import IMPORTS, AnswerKind
from helpers.checks.mistakes import known_answers
from helpers.checks.registry import exercises

PRELUDE = IMPORTS


@dataclass(frozen=True)
class Sample:
    """An answer to the exercise `exercise`: a right one, or a wrong one that is not a known mistake."""

    exercise: str
    notebook: str
    right: bool
    title: str
    source: str
    outcome: str = ""
    mistake: str = ""

    def __str__(self) -> str:
        return f"{self.exercise}: {self.title}"


@cache
def samples_of(name: str) -> tuple[Sample, ...]:
    """Return the samples of one exercise."""
    exercise = exercises()[name]
    return tuple(
        Sample(
            name,
            exercise.notebook,
            known.kind is AnswerKind.RIGHT,
            known.title,
            known.source.removeprefix(IMPORTS),
            known.outcome.value,
            known.mistake,
        )
        for known in known_answers(exercise)
        if known.kind is not AnswerKind.MISTAKE
    )


def all_samples() -> list[Sample]:
    """Return every sample of every exercise."""
    return [sample for name in exercises() for sample in samples_of(name)]


def sample_called(name: str, title: str) -> Sample:
    """Return one sample by its exercise and title."""
    return next(sample for sample in samples_of(name) if sample.title == title)
