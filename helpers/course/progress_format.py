"""A learner's progress as data, and as the JSON text in which it is kept.

`progress` keeps the text in a file; what is here is pure. A file may have been edited, cut off or
written by another version, so `decode` lets nothing else through than it expects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Literal

import msgspec

VERSION = 1
Count = Annotated[int, msgspec.Meta(ge=0)]


class ProgressFormatError(ValueError):
    """The text is not a progress file of this version."""


@dataclass(frozen=True)
class Score:
    """How one check of an exercise ended; `when` is UTC, ISO 8601."""

    outcome: str
    points: float
    out_of: float
    when: str

    @property
    def share(self) -> float:
        return self.points / self.out_of if self.out_of > 0 else 0.0


@dataclass(frozen=True)
class Attempts:
    """All checks of one exercise. Among equally good scores the first counts as the best."""

    tries: Count
    best: Score
    last: Score


@dataclass(frozen=True)
class QuizAnswers:
    """All answers to one quiz, by option number from 0; `correct` says whether any was right."""

    tries: Count
    first_choice: Count
    last_choice: Count
    correct: bool
    when: str


@dataclass(frozen=True)
class Progress:
    """What a learner has done: attempts by exercise, hints seen by exercise, answers by quiz.

    `note` is what to tell the learner about the file itself; it is never stored.
    """

    exercises: Mapping[str, Attempts] = field(default_factory=dict)
    hints: Mapping[str, int] = field(default_factory=dict)
    quizzes: Mapping[str, QuizAnswers] = field(default_factory=dict)
    note: str = ""

    def has_passed(self, exercise: str) -> bool:
        """Whether some check of an exercise gave all points."""
        attempts = self.exercises.get(exercise)
        return attempts is not None and attempts.best.share >= 1

    def with_score(self, exercise: str, score: Score) -> Progress:
        """Return the progress after one more check of an exercise."""
        old = self.exercises.get(exercise)
        best = old.best if old and old.best.share >= score.share else score
        attempts = Attempts((old.tries if old else 0) + 1, best, score)
        return replace(self, exercises={**self.exercises, exercise: attempts})

    def with_hint(self, exercise: str, level: int) -> Progress:
        """Return the progress after the first `level` hints of an exercise were seen."""
        seen = max(level, self.hints.get(exercise, 0))
        return replace(self, hints={**self.hints, exercise: seen})

    def with_answer(self, quiz: str, choice: int, correct: bool, when: str) -> Progress:
        """Return the progress after one more answer to a quiz."""
        old = self.quizzes.get(quiz)
        answers = QuizAnswers(
            tries=(old.tries if old else 0) + 1,
            first_choice=old.first_choice if old else choice,
            last_choice=choice,
            correct=correct or (old is not None and old.correct),
            when=when,
        )
        return replace(self, quizzes={**self.quizzes, quiz: answers})


def encode(progress: Progress) -> str:
    """Write the progress as text."""
    content = asdict(progress)
    del content["note"]
    return json.dumps({"version": VERSION, **content}, indent=1, sort_keys=True) + "\n"


class _File(msgspec.Struct):
    """What the file holds: all of it must be there, and of these kinds."""

    version: Literal[1]
    exercises: dict[str, Attempts]
    hints: dict[str, Count]
    quizzes: dict[str, QuizAnswers]


def decode(text: str) -> Progress:
    """Read the progress back. Raises ProgressFormatError on any other text, saying why."""
    try:
        content = msgspec.json.decode(text, type=_File)
    except msgspec.ValidationError as error:
        reason = f"it is not a progress file of version {VERSION} ({error})"
    except (ValueError, RecursionError) as error:
        reason = f"it is not JSON: {error}"
    else:
        return Progress(content.exercises, content.hints, content.quizzes)
    raise ProgressFormatError(reason)
