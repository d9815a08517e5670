"""Cache the results of answers by all of their dependencies: answer, checks, engine, versions.

So a second run grades only changed answers, and a killed batch continues where it stopped. Equal answers of a
class run only once. For passing answers, comments and blank lines are ignored. Failing answers that differ in
comments or blank lines run separately, because their reports contain line numbers.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec

from helpers.answers.build import Answer
from helpers.checks.exercise import Exercise
from helpers.checks.mistakes import instructor_folder
from helpers.grading.grade_options import CannotGrade
from helpers.grading.record import ExerciseRecord

_COURSE = Path(__file__).parents[1]
_MAX_BYTES = 8 << 20


@dataclass(frozen=True)
class Cache:
    """A folder with one file for each answer that has run. If the folder is None, no results are cached.

    again: whether to ignore cached results, and replace them with new results.
    """

    folder: Path | None
    again: bool = False

    def get(self, key: str) -> ExerciseRecord | None:
        """Return the record stored under a key, or None if it does not exist or cannot be read."""
        if self.folder is None or self.again:
            return None
        # A truncated or edited file, or a file of a different version, counts as missing, because running an
        # answer again costs seconds, but a wrong record costs points.
        with suppress(OSError, ValueError):
            path = self._path(key)
            if path.stat().st_size <= _MAX_BYTES:
                return msgspec.convert(json.loads(path.read_text(encoding="utf-8")), ExerciseRecord)
        return None

    def put(self, key: str, record: ExerciseRecord) -> None:
        """Store a record. If the process is killed, either the old or the new file remains."""
        if self.folder is not None:
            text = json.dumps(msgspec.to_builtins(record))
            write_atomically(self._path(key), text.encode())

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / f"{key}.json"


def answer_key(exercise: Exercise, answer: Answer, secret: str, versions: Mapping[str, str]) -> str:
    """Return the key of one answer, which changes with all dependencies of the record."""
    where = [astuple(origin) for origin in answer.origins]  # reports contain line numbers
    return _key(exercise, answer, answer.source, where, secret, versions)


def program_key(
    exercise: Exercise, answer: Answer, secret: str, versions: Mapping[str, str]
) -> str:
    """Return a key shared by equal programs, or "" for sources that Python cannot parse."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return _key(
            exercise, answer, ast.dump(ast.parse(answer.source)), "program", secret, versions
        )
    return ""


def _key(
    exercise: Exercise,
    answer: Answer,
    program: str,
    places: object,
    secret: str,
    versions: Mapping[str, str],
) -> str:
    parts = [exercise.name, answer.name, program, places, answer.notes, secret]
    parts.append(sorted(versions.items()))
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


def current_versions(level: str, secret: str = "") -> Mapping[str, str]:
    """Return the versions of all dependencies of verdicts except the answer, such as engine and checks.

    secret: the secret of the hidden cases. A short digest of it is included, which does not reveal it.
    """
    mark = hashlib.sha256(f"real-ranks {secret}".encode()).hexdigest()[:8]
    return {
        "course": _digest_of_the_course(),
        "torch": version("torch"),
        "python": platform.python_version(),
        "sandbox": level,
        **({"secret": mark} if secret else {}),
    }


@cache
def _digest_of_the_course() -> str:
    digest = hashlib.sha256()
    for path in sorted(_COURSE.rglob("*.py")):
        # these modules only display and count verdicts
        if not {"reports", "points"} & {*path.relative_to(_COURSE).parts}:
            digest.update(str(path.relative_to(_COURSE)).encode() + b"\0" + path.read_bytes())
    for path in sorted(instructor_folder().glob("*.py")):  # a new mistake changes verdicts
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class CannotWrite(CannotGrade):
    """A result cannot be written: the disk is full or read-only. The message is one line."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(path, why)  # so that the error can be pickled
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path} cannot be written: {self.why}. Earlier results are kept."


@contextmanager
def reporting_write_errors(path: Path) -> Iterator[None]:
    """Raise CannotWrite if an operation on a file of the results fails."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(path, error.strerror or str(error)) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically, creating its folder if necessary.

    Raises:
        CannotWrite: The file cannot be written; the old file still exists.
    """
    with reporting_write_errors(path):
        _write_atomically(path, content)


def _write_atomically(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Use the same folder, because renaming is atomic only within one file system.
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            # Sync before renaming. Otherwise a crash of the machine could leave an empty file.
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
