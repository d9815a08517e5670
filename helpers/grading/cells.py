"""While an answer is tried, marks stand for its cells' names: so equal answers have equal records.

    Answer --marked--> Answer, its cells counted from 0 --Judge, cache--> record with marks --named--> record

So an answer is not graded again because a cell was inserted above it, and equal answers of a class get equal
points. Used by `grader`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from helpers.answers.build import Answer, cell_number
from helpers.grading.record import ExerciseRecord

# Of Unicode's private area, so that nothing else looks like one. Answers that print such characters can at
# most have their own cells named.
_BEGIN, _END = "\ue000", "\ue001"
_MARK = re.compile(f"{_BEGIN}([0-9]{{1,6}}){_END}")


def mark(cell: int) -> str:
    """Name a cell of a marked answer."""
    return f"{_BEGIN}{cell}{_END}"


def marked(answer: Answer) -> tuple[Answer, tuple[int, ...]]:
    """Return an answer whose cells are counted from 0, and their indices in the notebook."""
    cells = tuple(dict.fromkeys(origin.cell for origin in answer.origins))
    origins = tuple(replace(each, cell=cells.index(each.cell)) for each in answer.origins)
    return replace(answer, origins=origins), cells


def named(record: ExerciseRecord, cells: Sequence[int]) -> ExerciseRecord:
    """Put the names of an answer's cells where its record has marks."""

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return cell_number(cells[number]) if number < len(cells) else ""

    # a mark and a name mean nothing to JSON, so that all texts can be treated as one
    text = _MARK.sub(name, json.dumps(msgspec.to_builtins(record), ensure_ascii=False))
    text = re.sub(f"[{_BEGIN}{_END}]", "", text)  # where a text was cut off within a mark
    found = msgspec.convert(json.loads(text), ExerciseRecord)
    return replace(found, answer=record.answer)
