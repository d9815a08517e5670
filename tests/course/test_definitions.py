"""A notebook's check reports repeated definitions of an answer, like a check in a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.check_result import CheckResult, Outcome
from helpers.course.definitions import definitions_note, note_definitions

FIRST = "def token_ring(rank, world_size):\n    return rank"
STUB = (
    "def token_ring(rank, world_size):\n    raise NotImplementedError('Exercise 2.2: Token ring')"
)


def test_notes_definition_used_by_graders() -> None:
    note = definitions_note("token_ring", ["import torch", FIRST, FIRST + " + 1"])
    assert note == (
        "`token_ring` is defined 2 times: the version that ran last was checked here, and graders take "
        "the last one in the notebook (cell 3)"
    )


@pytest.mark.parametrize("cells", [[FIRST], [STUB, FIRST], [], ["%%ranks 2\n" + FIRST, FIRST]])
def test_single_definition_adds_no_note(cells: list[str]) -> None:
    assert definitions_note("token_ring", cells) == ""


def test_reads_open_notebook_definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "source": FIRST, "outputs": []}] * 2
    path = tmp_path / "own.ipynb"
    path.write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    result = CheckResult("token_ring", "Exercise 2.2", Outcome.WRONG, out_of=10)
    assert note_definitions(result).notes == ()
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    (note,) = note_definitions(result).notes
    assert note.startswith("`token_ring` is defined 2 times")
