"""Replace cell names with marks while an answer runs, so that equal answers have equal records.

    Answer --renumber_cells--> Answer, its cells counted from 0 --Judge, cache--> record with marks
    record with marks --restore_cell_names--> record

So inserting a cell above an answer causes no new run, and equal answers of a class receive equal points.
`grader` uses this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from helpers.answers.build import Answer, cell_number
from helpers.grading.record import ExerciseRecord

# Taken from Unicode's private use area, so that no other text looks like a mark. If an answer prints these
# characters, the only effect is that the names of its cells are inserted.
_BEGIN, _END = "\ue000", "\ue001"
_MARK_PATTERN = re.compile(f"{_BEGIN}([0-9]{{1,6}}){_END}")


def cell_mark(cell: int) -> str:
    """Return the mark of a cell in a marked answer."""
    return f"{_BEGIN}{cell}{_END}"


def renumber_cells(answer: Answer) -> tuple[Answer, tuple[int, ...]]:
    """Return an answer whose cells are counted from 0, and the cells' indices in the notebook."""
    cells = tuple(dict.fromkeys(origin.cell for origin in answer.origins))
    origins = tuple(replace(each, cell=cells.index(each.cell)) for each in answer.origins)
    return replace(answer, origins=origins), cells


def restore_cell_names(record: ExerciseRecord, cells: Sequence[int]) -> ExerciseRecord:
    """Replace the marks in a record with the names of the answer's cells."""

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return cell_number(cells[number]) if number < len(cells) else ""

    # marks and names need no escaping in JSON, so all strings can be replaced at once
    text = _MARK_PATTERN.sub(name, json.dumps(msgspec.to_builtins(record), ensure_ascii=False))
    text = re.sub(f"[{_BEGIN}{_END}]", "", text)  # remains of a text cut off within a mark
    found = msgspec.convert(json.loads(text), ExerciseRecord)
    return replace(found, answer=record.answer)
