"""Store a learner's progress as data and in one small file.

A finished check calls `store_check`, hints call `record_hint`, and quizzes `record_quiz`. `course progress`
shows the result of `read_progress`. The file survives a crash, because it is always replaced as a whole. It
also survives simultaneous use by two kernels, because each of them reads, changes and writes it under a lock.
A file may have been edited, truncated or written by a different version, so `decode` accepts only the
expected form. No function fails because of the file. Instead, the caller shows a note that describes the
problem.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from helpers.check_result import CheckResult
from helpers.course.workspace import WorkspaceError, find_workspace

LOCK_TIMEOUT_S = 2.0
MAX_BYTES = 1 << 20
"""Many times the size of a complete course's file, so a larger file is not a progress file."""

NO_LOCK_ERRNOS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
Count = Annotated[int, msgspec.Meta(ge=0)]


class ProgressFormatError(ValueError):
    """The text is not a progress file of this version."""


@dataclass(frozen=True)
class Score:
    """The result of one check of an exercise; `when` is UTC, ISO 8601."""

    outcome: str
    points: float
    out_of: float
    when: str

    @property
    def share(self) -> float:
        return self.points / self.out_of if self.out_of > 0 else 0.0


@dataclass(frozen=True)
class Attempts:
    """All checks of one exercise. If several scores are equally good, the first counts as the best."""

    tries: Count
    best: Score
    last: Score


@dataclass(frozen=True)
class QuizAnswers:
    """All answers to one quiz, as option numbers from 0. `correct`: whether any answer was right."""

    tries: Count
    first_choice: Count
    last_choice: Count
    correct: bool
    when: str


@dataclass(frozen=True)
class Progress:
    """A learner's progress: the attempts and hints for each exercise, and the answers to each quiz.

    `path` is the name of the path chosen by the learner, or "". `note` is a message to the learner about the
    file; it is never stored.
    """

    exercises: Mapping[str, Attempts] = field(default_factory=dict)
    hints: Mapping[str, int] = field(default_factory=dict)
    quizzes: Mapping[str, QuizAnswers] = field(default_factory=dict)
    path: str = ""
    note: str = ""

    def has_passed(self, exercise: str) -> bool:
        """Return whether an exercise's points have all been awarded in one check."""
        attempts = self.exercises.get(exercise)
        return attempts is not None and attempts.best.share >= 1

    def with_score(self, exercise: str, score: Score) -> Progress:
        """Return the progress extended by a check of an exercise."""
        old = self.exercises.get(exercise)
        best = old.best if old and old.best.share >= score.share else score
        attempts = Attempts((old.tries if old else 0) + 1, best, score)
        return replace(self, exercises={**self.exercises, exercise: attempts})

    def with_hint(self, exercise: str, level: int) -> Progress:
        """Return the progress extended by the first `level` hints of an exercise."""
        seen = max(level, self.hints.get(exercise, 0))
        return replace(self, hints={**self.hints, exercise: seen})

    def with_answer(self, quiz: str, choice: int, correct: bool, when: str) -> Progress:
        """Return the progress extended by an answer to a quiz."""
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
    """Return the progress as text."""
    content = asdict(progress)
    del content["note"]
    return json.dumps({"version": 1, **content}, indent=1, sort_keys=True) + "\n"


class _File(msgspec.Struct):
    """The file's content, with these types. Older files have no path."""

    version: Literal[1]
    exercises: dict[str, Attempts]
    hints: dict[str, Count]
    quizzes: dict[str, QuizAnswers]
    path: str = ""


def decode(text: str) -> Progress:
    """Return the progress stored in a string. Raises ProgressFormatError, with the reason, if that fails."""
    try:
        content = msgspec.json.decode(text, type=_File)
    except msgspec.ValidationError as error:
        reason = f"it is not a progress file of version 1 ({error})"
    except (ValueError, RecursionError) as error:
        reason = f"it is not JSON: {error}"
    else:
        return Progress(content.exercises, content.hints, content.quizzes, content.path)
    raise ProgressFormatError(reason)


def progress_file() -> Path:
    """Return the file's path: $REAL_RANKS_PROGRESS, or .progress.json in this person's working folder."""
    if named := os.environ.get("REAL_RANKS_PROGRESS"):
        return Path(named)
    try:
        return find_workspace().work / ".progress.json"
    except WorkspaceError:
        return Path.cwd() / ".progress.json"


def record_score(exercise: str, outcome: str, points: float, out_of: float) -> str:
    """Record a check's result. Return a note for the learner, or ""."""
    score = Score(outcome, float(points), float(out_of), _now())
    return _update(lambda progress: progress.with_score(exercise, score))


def store_check(result: CheckResult) -> CheckResult:
    """Record a finished check if the exercise was attempted. Add a note, not an error, if that fails."""
    if not result.attempted:
        return result
    problem = record_score(result.name, result.outcome.value, result.points, result.out_of)
    return replace(result, notes=(*result.notes, problem)) if problem else result


def record_hint(exercise: str, level: int) -> str:
    """Record that the first `level` hints of an exercise were shown. Return a note or ""."""
    return _update(lambda progress: progress.with_hint(exercise, level))


def record_quiz(quiz: str, choice: int, correct: bool) -> str:
    """Record an answer to a quiz, as an option number from 0. Return a note, like `record_score`."""
    return _update(lambda progress: progress.with_answer(quiz, choice, correct, _now()))


def record_path(path: str) -> str:
    """Record the name of the path chosen by a learner. Return a note, like `record_score`."""
    return _update(lambda progress: replace(progress, path=path))


def read_progress() -> Progress:
    """Return the learner's progress.

    If the file is unreadable, the progress is empty, and its `note` explains why.
    """
    path = progress_file()
    try:
        if not path.exists():
            return Progress()
        with locked(path):
            return _load(path)
    except OSError as error:
        return _read_only(path, error)


def _read_only(path: Path, error: OSError) -> Progress:
    """Read a file that cannot be locked, because it belongs to another user or is on a read-only disk."""
    try:
        return _read(path)
    except (OSError, ProgressFormatError):
        return Progress(note=f"{path} could not be read: {error.strerror or error}.")


def _update(change: Callable[[Progress], Progress]) -> str:
    path = progress_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path):
            progress = _load(path)
            _store(path, encode(change(progress)))
    except OSError as error:
        return (
            f"Your progress could not be saved in {path}: {error.strerror or error}."
            " Everything else works; set REAL_RANKS_PROGRESS to a file that can be written."
        )
    return progress.note


def _load(path: Path) -> Progress:
    """Read the file under the lock. A damaged file is renamed and not used."""
    try:
        return _read(path)
    except FileNotFoundError:
        return Progress()
    except ProgressFormatError as error:
        kept = _move_aside(path)
        return Progress(
            note=f"{path.name} could not be read: {error}. It is kept as {kept.name}, and your progress "
            "starts again from zero."
        )


def _read(path: Path) -> Progress:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ProgressFormatError(f"it is larger than {MAX_BYTES} bytes")
    return decode(content.decode("utf-8", errors="replace"))


def _store(path: Path, text: str) -> None:
    # The new content is on disk before the renaming, so after a crash there is the old or the new file.
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def _move_aside(path: Path) -> Path:
    count = 1
    while (kept := path.with_name(f"{path.stem}.corrupt-{count}{path.suffix}")).exists():
        count += 1
    return path.rename(kept)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file's lock. Raises TimeoutError, an OSError, if another process holds it for too long."""
    # not available on native Windows, where importing the course must still print "use WSL"
    import fcntl

    # Lock a separate file, because the progress file is replaced, and a lock on the old file would have no
    # effect.
    with path.with_name(f"{path.name}.lock").open("a") as lock:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process is holding {lock.name}") from None
                time.sleep(0.01)
            except OSError as error:
                # Some network disks have no locks. There, two simultaneous kernels may lose a score.
                if error.errno not in NO_LOCK_ERRNOS:
                    raise
                break
        yield


def _now() -> str:
    return datetime.now(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
