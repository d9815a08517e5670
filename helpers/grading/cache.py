"""What was tried is kept, and found again by what it depends on: answer, checks, engine, versions.

A second run grades only what changed, and a batch that was killed goes on where it was. Of a class, equal
answers are tried once; of those that pass also programs that differ only in comments and blank lines. What
fails is tried for each of these, as its report names the lines.
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
from helpers.checks.mistakes import own_folder
from helpers.grading.record import ExerciseRecord
from helpers.grading.setting import CannotGrade

_COURSE = Path(__file__).parents[1]
_MAX_BYTES = 8 << 20


@dataclass(frozen=True)
class Cache:
    """A folder with one file for each answer that was tried; None keeps nothing.

    again: nothing that was kept is returned, and what is tried replaces it.
    """

    folder: Path | None
    again: bool = False

    def get(self, key: str) -> ExerciseRecord | None:
        """Return what was kept under a key; None if there is nothing, or nothing that can be read."""
        if self.folder is None or self.again:
            return None
        # A file that was cut off, edited, or written by another version counts as absent: trying an answer
        # again costs seconds, a wrong record costs somebody points.
        with suppress(OSError, ValueError):
            path = self._path(key)
            if path.stat().st_size <= _MAX_BYTES:
                return msgspec.convert(json.loads(path.read_text(encoding="utf-8")), ExerciseRecord)
        return None

    def put(self, key: str, record: ExerciseRecord) -> None:
        """Keep a record. Somebody who kills the process at any moment leaves the old file or the new."""
        if self.folder is not None:
            text = json.dumps(msgspec.to_builtins(record))
            write_whole(self._path(key), text.encode())

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / f"{key}.json"


def key_of(exercise: Exercise, answer: Answer, secret: str, versions: Mapping[str, str]) -> str:
    """Return the key of one answer to one exercise: it changes with all on which the record depends."""
    where = [astuple(origin) for origin in answer.origins]  # reports name lines
    return _key(exercise, answer, answer.source, where, secret, versions)


def program_key(
    exercise: Exercise, answer: Answer, secret: str, versions: Mapping[str, str]
) -> str:
    """Return a key that equal programs share; "" for what Python cannot parse."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return _key(
            exercise, answer, ast.dump(ast.parse(answer.source)), "program", secret, versions
        )
    return ""


def _key(
    exercise: Exercise,
    answer: Answer,
    program: str,
    where: object,
    secret: str,
    versions: Mapping[str, str],
) -> str:
    parts = [exercise.name, answer.name, program, where, answer.notes, secret]
    parts.append(sorted(versions.items()))
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


def versions_here(level: str, secret: str = "") -> Mapping[str, str]:
    """Name what verdicts depend on besides the answer: the engine and the checks by their content.

    secret: of the hidden cases. What tells secrets apart is named too, and gives none away.
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
        # these show and count verdicts, and change none
        if not {"reports", "points"} & {*path.relative_to(_COURSE).parts}:
            digest.update(str(path.relative_to(_COURSE)).encode() + b"\0" + path.read_bytes())
    for path in sorted(own_folder().glob("*.py")):  # with a new sentence, verdicts change
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class CannotWrite(CannotGrade):
    """A result cannot be written: the disk is full, or read-only. One line: which file, and why."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(path, why)  # it must come through a pipe from a grader's process
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path} cannot be written: {self.why}. What was graded before is kept."


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise CannotWrite where what is done to a file of the results fails."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(path, error.strerror or str(error)) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees a part of it; make its folder if need be.

    Raise CannotWrite where that fails; then the old file is still there.
    """
    with writing(path):
        _write_whole(path, content)


def _write_whole(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, as a rename is atomic only within one file system.
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            # On the disk before it takes the name: else a crash of the machine could leave an empty file.
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
