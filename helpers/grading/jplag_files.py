"""Write the answers of a class as files for comparison by JPlag or MOSS.

records that count --> OUT/answers/LEARNER/EXERCISE.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from helpers.answers.build import Answer
from helpers.answers.reader import UnreadableNotebook, read_answers
from helpers.checks.headings import headings
from helpers.grading.cache import reporting_write_errors, write_atomically
from helpers.grading.record import Record
from helpers.grading.reports.slugs import page_names


def reference_answers(notebooks: Iterable[str], folder: Path | None) -> dict[str, str]:
    """Return the source of each exercise's reference solution, if this copy of the course has it."""
    found: dict[str, str] = {}
    for notebook in notebooks if folder else ():
        names = [each.name for each in headings().values() if each.notebook == notebook]
        with suppress(UnreadableNotebook):
            answers = read_answers(Path(folder or "") / f"{notebook}.ipynb", names)
            found |= {n: each.source for n, each in answers.items() if isinstance(each, Answer)}
    return found


def write_answers(records: Sequence[Record], out: Path) -> None:
    """Write a folder for each learner, with a file for each exercise.

    Files of earlier runs are removed, because they may come from records that no longer count.
    """
    for old in (out / "answers").glob("*/*.py"):
        with reporting_write_errors(old):
            old.unlink()
        with suppress(OSError):  # the folder may contain the instructor's files
            old.parent.rmdir()
    names = page_names(record.learner for record in records)
    for record in records:
        folder = out / "answers" / Path(names[record.learner]).stem
        for exercise in record.exercises:
            # Only the course's names may become file names.
            if exercise.answer and exercise.name in headings():
                text = exercise.answer.rstrip("\n") + "\n"
                write_atomically(folder / f"{exercise.name}.py", text.encode("utf-8", "replace"))
