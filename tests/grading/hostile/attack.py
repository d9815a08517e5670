"""Define hostile submissions as data, hand them in, and read their results.

Each file of attacks contains a tuple of `Attack`. The tests hand them in through `Grader.grade`, each as the
answer to a different exercise, and check the effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from helpers.checks.kinds import Kind
from helpers.checks.registry import exercises
from helpers.grading.grader import Grader
from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.submissions import Job
from tests.grading.notebooks import write_notebook

NOTEBOOK = "04_collectives"
TRIED = '''
def tried(**attempts):
    """Make each attempt; name those that went through."""
    through = []
    for name, attempt in attempts.items():
        try:
            if attempt() is not False:
                through.append(name)
        except BaseException:
            pass
    return "REACHED " + " ".join(through) if through else "contained"
'''
"""A cell used by attacks, whose answer is then "contained" or the names of the successful attempts."""
TOUCHED = "REACHED"


@dataclass(frozen=True)
class Attack:
    """One hostile answer.

    source: a cell that defines `attack(rank, world_size, *inputs)`; it is handed in under an exercise's name.
    outcomes: the possible outcomes. says: a text that must occur in the record, as proof that the attack ran
    to its end. bare: whether the attack would succeed without a sandbox, doing no harm.
    """

    name: str
    source: str
    outcomes: tuple[str, ...] = ("wrong",)
    says: str = ""
    bare: bool = False


def slots() -> list[str]:
    """Return the exercises under whose names attacks are handed in: functions on two or more ranks."""
    of = [e for e in exercises().values() if e.notebook == NOTEBOOK]
    return [e.name for e in of if e.kind is Kind.RANKS]


def hand_in(grader: Grader, folder: Path, attacks: Sequence[Attack]) -> dict[str, ExerciseRecord]:
    """Hand in the attacks, one per exercise of a notebook; return each attack's record."""
    found = {}
    names = slots()
    for first in range(0, len(attacks), len(names)):
        pairs = dict(zip(names, attacks[first : first + len(names)], strict=False))
        cells = [a.source.replace("def attack(", f"def {name}(") for name, a in pairs.items()]
        record = graded(grader, folder / str(first), TRIED, *cells)
        for each in record.exercises:
            if each.name in pairs:
                found[pairs[each.name].name] = each
    return found


def graded(grader: Grader, folder: Path, *cells: str, notebook: str = NOTEBOOK) -> Record:
    """Hand in a notebook with these cells."""
    path = write_notebook(folder / f"{notebook}.ipynb", *cells)
    record = grader.grade(Job("mallory", path, path.name))
    assert record.status is Status.GRADED, record.message
    return record


def text_of(record: ExerciseRecord) -> str:
    """Return all texts of a record, for finding required or forbidden words."""
    return msgspec.json.encode([record.message, record.flags, record.cases]).decode()
