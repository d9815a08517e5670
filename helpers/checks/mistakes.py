"""An exercise's known mistakes: wrong programs, each with a sentence for its author.

The mistakes are in NAME.answers (see `answer_file`), next to the exercise's Python file. Because many of them
are close to a solution, a learner's bundle has NAME.sealed instead. The sealed file contains only the
mistakes, and is compressed, so that opening it reveals none of them. Each program in it is complete, so that
a check can run it.

Mistakes that an instructor has collected from a class are in files of the same form in a separate folder:
`$REAL_RANKS_MISTAKES` or, if it is not set, `work/mistakes` of this copy of the course. They are read after
the course's mistakes.
"""

from __future__ import annotations

import bz2
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from helpers.check_result import Outcome
from helpers.checks.answer_file import (
    IMPORTS,
    AnswerKind,
    KnownAnswer,
    common_code,
    find_end_of_mistakes,
    read_answers_file,
    write_entry,
)
from helpers.checks.reference_source import MissingSolution, Program, read_reference

if TYPE_CHECKING:  # the exercise needs torch, but its mistakes do not
    from helpers.checks.exercise import Exercise
    from helpers.checks.headings import Heading

ANSWERS, SEALED = ".answers", ".sealed"
_EXERCISES = Path(__file__).parents[1] / "exercises"


@dataclass(frozen=True)
class KnownMistake:
    """A wrong program. words: the sentence for its author. outcome: the outcome of its check.

    seen: in a script exercise, the name of the observation by which it is recognized. A check does not run
    such a mistake, so it may have no program.

    edit: the difference from the solution, or from the right answer called `base`; "" if the program was
    written as a whole.
    """

    title: str
    words: str
    source: str
    outcome: Outcome = Outcome.WRONG
    edit: str = ""
    base: str = ""
    seen: str = ""


def known_mistakes(exercise: Exercise | Heading) -> tuple[KnownMistake, ...]:
    """Return an exercise's mistakes in the order of their files; an empty result if there is no file."""
    if not exercise.notebook:
        return ()
    return _read_mistakes(answers_path(exercise), instructor_folder() / f"{exercise.name}.py")


def shared_mistakes(exercise: Exercise | Heading) -> tuple[KnownMistake, ...]:
    """Return the mistakes shared by all script exercises of a notebook, from its `shared.answers`."""
    return _read_mistakes(answers_path(exercise).with_name(f"shared{ANSWERS}"), Path())


@cache
def _read_mistakes(answers_path: Path, own_path: Path) -> tuple[KnownMistake, ...]:
    # a learner's bundle has only the sealed file
    sealed_path = answers_path.with_suffix(SEALED)
    mistakes: tuple[KnownMistake, ...] = ()
    if answers_path.is_file():
        # If this copy of the course lacks the solution, edits of it cannot be read and are left out.
        with suppress(MissingSolution):
            mistakes = select_mistakes(read_answers_at(answers_path))
    elif sealed_path.is_file():
        content = bz2.decompress(sealed_path.read_bytes())
        mistakes = msgspec.json.decode(content, type=tuple[KnownMistake, ...])
    return mistakes + (
        read_mistakes(own_path.read_text(encoding="utf-8"), str(own_path))
        if own_path.is_file()
        else ()
    )


def known_answers(exercise: Exercise | Heading) -> tuple[KnownAnswer, ...]:
    """Return every entry of an exercise's file of answers: mistakes, other wrong answers, and right ones."""
    path = answers_path(exercise)
    return read_answers_at(path) if path.is_file() else ()


@cache
def read_answers_at(path: Path) -> tuple[KnownAnswer, ...]:
    """Read a file of answers. Raise ValueError if an entry is malformed, or an edit does not fit."""
    return read_answers_file(
        path.read_text(encoding="utf-8"), path.name, partial(solution_of, path)
    )


def solution_of(path: Path) -> Program:
    """Return the reference solution for the file of answers at `path`. Raise MissingSolution."""
    notebook = path.parent.name.removeprefix("nb")
    return read_reference(_EXERCISES.parents[1] / "solutions", notebook, path.stem)


def instructor_folder() -> Path:
    """Return the folder of the mistakes added by an instructor."""
    folder = os.environ.get("REAL_RANKS_MISTAKES")
    return Path(folder).expanduser() if folder else _EXERCISES.parents[1] / "work" / "mistakes"


def answers_path(exercise: Exercise | Heading) -> Path:
    """Return the path of an exercise's file of answers."""
    return _EXERCISES / f"nb{exercise.notebook}" / f"{exercise.name}{ANSWERS}"


def readable_program(mistake: KnownMistake) -> str:
    """Return a mistake in readable form: its edit of the solution, or its program without imports."""
    if mistake.edit and not mistake.base:
        return mistake.edit
    return mistake.source.removeprefix(IMPORTS).strip("\n")


def clear_caches() -> None:
    """Forget the contents of all files, so that they are read again when needed."""
    _read_mistakes.cache_clear()
    read_answers_at.cache_clear()
    read_reference.cache_clear()


def select_mistakes(answers: Sequence[KnownAnswer]) -> tuple[KnownMistake, ...]:
    """Return the known mistakes among the entries of a file."""
    return tuple(
        KnownMistake(
            answer.title,
            answer.words,
            answer.source,
            answer.outcome,
            answer.edit,
            answer.base,
            answer.seen,
        )
        for answer in answers
        if answer.kind is AnswerKind.MISTAKE
    )


def read_mistakes(text: str, file: str = "") -> tuple[KnownMistake, ...]:
    """Read the mistakes in a file of complete programs, such as an instructor's file.

    Raises:
        ValueError: An entry is malformed. The message names file and line.
    """
    return select_mistakes(read_answers_file(text, file))


def insert_mistake(text: str, mistake: KnownMistake, path: Path | None = None) -> str:
    """Return the text of a file of answers with one more mistake, after its last mistake.

    path: the path of the file, used to find its solution. Raise ValueError if reading the result would
    not return exactly the answers of `text` and this mistake.
    """
    words = " ".join(mistake.words.split())
    source = mistake.source.lstrip("\n").rstrip("\n") + "\n"
    entry = KnownAnswer(
        AnswerKind.MISTAKE,
        mistake.title,
        words,
        source,
        mistake.outcome,
        mistake.edit,
        base=mistake.base,
    )
    end, index = find_end_of_mistakes(text)
    text_before, text_after = text[:end].rstrip("\n"), text[end:]
    new_text = (
        (text_before + "\n\n" if text_before else "")
        + write_entry(entry)
        + ("\n" + text_after if text_after else "")
    )
    # A learner's program is data, but this file contains it as text. A line inside a string of the program
    # may look like a marker, and would become a separate mistake with a program and sentence chosen by the
    # learner.
    reference = None if path is None else partial(solution_of, path)
    old_answers = read_answers_file(text, reference=reference)
    new_answers = read_answers_file(new_text, reference=reference)
    unchanged = (*new_answers[:index], *new_answers[index + 1 :])
    if unchanged != old_answers or not _is_same_entry(new_answers[index : index + 1], entry, text):
        raise ValueError(
            "it could not be read back as a single known mistake. Look for a line of the program "
            "that begins with "
            "`# %% `, for example in a string, and for ` | ` in the title."
        )
    return new_text


def _is_same_entry(entries: Sequence[KnownAnswer], entry: KnownAnswer, text: str) -> bool:
    """Return whether the last entry read is the entry that was written."""
    if not entries:
        return False
    source = entries[0].source if entry.edit else common_code(text) + entry.source
    return entries[0] == replace(entry, source=source)


def seal_mistakes(mistakes: Sequence[KnownMistake]) -> bytes:
    """Return mistakes for a learner's bundle, as data in which no program can be mistaken for a marker."""
    return bz2.compress(msgspec.json.encode(mistakes))
