"""Add a note to a check if the notebook defines the answer repeatedly: graders use the last definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from helpers.answers.build import cell_number, stub_line
from helpers.answers.listing import Listing
from helpers.check_result import CheckResult
from helpers.course.open_notebook import cells_of_open_notebook


def note_definitions(result: CheckResult) -> CheckResult:
    """Add a note to a finished check if the last saved notebook defines the answer twice."""
    if not result.attempted:
        return result
    note = definitions_note(result.name, cells_of_open_notebook())
    return replace(result, notes=(*result.notes, note)) if note else result


def definitions_note(name: str, cells: Sequence[str]) -> str:
    """Return a note if several code cells define an answer, or ""."""
    definitions = [
        statement
        for statement in Listing(cells).binders(name)
        if statement.is_definition and not statement.skipped and not stub_line(statement.node)
    ]
    if len({statement.cell for statement in definitions}) < 2:
        return ""
    last = cell_number(definitions[-1].cell)
    return (
        f"`{name}` is defined {len(definitions)} times: the version that ran last was checked here, and "
        f"graders take the last one in the notebook ({last})"
    )
