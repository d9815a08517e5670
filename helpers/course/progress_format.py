"""A learner's progress as data, and as the JSON text in which it is kept.

`progress` keeps the text in a file; what is here is pure. A file may have been edited, cut off or
written by another version, so `decode` checks everything it reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

VERSION = 1

T = TypeVar("T")


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

    tries: int
    best: Score
    last: Score


@dataclass(frozen=True)
class QuizAnswers:
    """All answers to one quiz, by option number from 0; `correct` says whether any was right."""

    tries: int
    first_choice: int
    last_choice: int
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


def decode(text: str) -> Progress:
    """Read the progress back. Raises ProgressFormatError on any other text, saying why."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProgressFormatError(f"it is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise ProgressFormatError(f"it is not a progress file of version {VERSION}")
    try:
        return Progress(
            exercises=_table(content["exercises"], _attempts),
            hints=_table(content["hints"], _count),
            quizzes=_table(content["quizzes"], _answers),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ProgressFormatError(f"it does not have the expected fields ({error})") from None


def _table(content: Any, read: Callable[[Any], T]) -> dict[str, T]:
    return {name: read(value) for name, value in content.items()}


def _attempts(content: Any) -> Attempts:
    return Attempts(
        _count(content["tries"]),
        best=_score(content["best"]),
        last=_score(content["last"]),
    )


def _score(content: Any) -> Score:
    return Score(
        _of(str, content["outcome"]),
        _points(content["points"]),
        _points(content["out_of"]),
        _of(str, content["when"]),
    )


def _answers(content: Any) -> QuizAnswers:
    return QuizAnswers(
        _count(content["tries"]),
        _count(content["first_choice"]),
        _count(content["last_choice"]),
        _of(bool, content["correct"]),
        _of(str, content["when"]),
    )


def _of(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not {kind.__name__}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or _of(int, value) < 0:
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def _points(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a number of points")
    return number
