"""Combine several files of one learner: the course's solutions, and copies or parts of one notebook.

    records --is_own--> the course's solutions earn no points
            --together--> for each exercise the better copy, up to the day that gives the most points

`reports.standing`, which knows the weights of exercises, calls this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from helpers.check_result import Outcome
from helpers.checks.headings import headings
from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.reports.outcomes import is_fault
from helpers.grading.reports.text import line

# A folder with the whole course contains two dozen files.
_MAX_NAMED = 3

Points = Callable[[Record], float]


def is_course_solution(record: Record, references: Mapping[str, str]) -> bool:
    """Return whether all answers in a record are exactly the reference solutions.

    Comments and docstrings are also compared, because a right answer often resembles the reference in some
    exercise, but no learner writes all of a notebook's solutions in the same words.
    """
    answers = {each.name: each.answer for each in record.exercises if each.answer}
    expected = [each.name for each in record.exercises if each.name in references]
    return bool(expected) and all(
        _code_lines(answers.get(name, "")) == _code_lines(references[name]) for name in expected
    )


def solutions_text(solutions: Sequence[Record]) -> str:
    """Return a sentence on a learner's files that contain the course's solutions, or "" if there are none."""
    if not solutions:
        return ""
    files = join_first_names([line(each.file) for each in solutions])
    return (
        f"The answers in {files} are the course's own solutions, word for word, and earn no points."
    )


def join_first_names(names: Iterable[str]) -> str:
    """Return the first few distinct names, followed by the number of further names."""
    distinct = list(dict.fromkeys(names))
    shown, rest = distinct[:_MAX_NAMED], len(distinct) - _MAX_NAMED
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")


def split_by_notebook(record: Record) -> list[Record]:
    """Return a record for each notebook with exercises in the file."""
    parts: dict[str, list[ExerciseRecord]] = {}
    for exercise in record.exercises:
        known = headings().get(exercise.name)
        parts.setdefault(known.notebook if known else record.notebook, []).append(exercise)
    if len(parts) < 2:
        return [record]
    note = f"This file contains {len(parts)} notebooks: {', '.join(parts)}."
    return [
        replace(record, notebook=notebook, exercises=tuple(part), notes=(*record.notes, note))
        for notebook, part in parts.items()
    ]


def combine_copies(
    copies: Sequence[Record], days_late: Mapping[str, int], per_day: float, points: Points
) -> tuple[Record, tuple[Record, ...]]:
    """Return the combined record of a notebook's copies, and the contributing copies.

    A later file counts only if it adds more points than its lateness costs. The returned record refers to the
    latest contributing file.

    Args:
        copies: The learner's copies, best first.
        days_late: The number of late days of each file.
        per_day: The cost of each late day, as a share of the points.
        points: Function that returns a record's points.
    """
    graded = [copy for copy in copies if copy.exercises]
    if len(graded) < 2:
        first = (graded or list(copies))[0]
        return first, (first,)
    until = sorted({days_late[copy.file] for copy in graded})
    tries = [
        _merge_copies([c for c in graded if days_late[c.file] <= day], days_late) for day in until
    ]
    # if two copies are equal, use the earlier one
    return max(
        tries, key=lambda each: points(each[0]) * max(0.0, 1 - per_day * days_late[each[0].file])
    )


def _merge_copies(
    copies: Sequence[Record], days_late: Mapping[str, int]
) -> tuple[Record, tuple[Record, ...]]:
    first, used = copies[0], {copies[0].file: copies[0]}
    exercises = list(first.exercises)
    for copy in copies[1:]:
        other = {each.name: each for each in copy.exercises}
        for at, mine in enumerate(exercises):
            if (theirs := other.get(mine.name)) is not None and _is_better(theirs, mine):
                exercises[at] = theirs
                used[copy.file] = copy
    if len(used) == 1:
        return first, (first,)
    latest = max(used.values(), key=lambda each: days_late[each.file])
    faults = any(map(is_fault, exercises))
    merged = replace(
        first,
        file=latest.file,
        sha256=latest.sha256,
        status=Status.HARNESS_FAULT if faults else Status.GRADED,
        exercises=tuple(exercises),
        notes=(
            *first.notes,
            f"{len(used)} files count: in each exercise, the one with the better answer: {', '.join(used)}.",
        ),
    )
    return merged, tuple(used.values())


def _is_better(theirs: ExerciseRecord, mine: ExerciseRecord) -> bool:
    """Return whether an exercise should replace the same exercise of the better file."""
    if is_fault(theirs) or is_fault(mine):  # a fault neither costs nor adds points
        return mine.outcome == Outcome.NOT_ATTEMPTED.value or theirs.passed
    if mine.outcome == Outcome.NOT_ATTEMPTED.value:
        return theirs.outcome != Outcome.NOT_ATTEMPTED.value
    return theirs.points > mine.points


def _code_lines(source: str) -> list[str]:
    """Return a source's lines without blank lines and imports, which may be in other cells."""
    lines = (each.rstrip() for each in source.splitlines())
    return [each for each in lines if each and not each.startswith(("import ", "from "))]
