"""Test the tags of cells: `exercise`, `solution`, `further`. Tools can select cells by them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest

from helpers.checks.headings import headings
from helpers.course.build import BEGIN
from helpers.course.notebook_file import Notebook, read_notebook, source_of
from helpers.course.workspace import find_workspace

OURS = {"exercise", "further", "solution"}
NAMES = sorted({heading.notebook for heading in headings().values()})


def expected_tags(notebook: str, cells: Sequence[Notebook]) -> list[set[str]]:
    """Return the required tags of a solved notebook's cells, according to its text and the headings.

    exercise: the cell with the function to write. solution: a cell with a solution. further: all cells of
    an optional exercise, from its heading to its check.
    """
    found = [{"solution"} if BEGIN in source_of(cell) else set[str]() for cell in cells]
    for heading in headings().values():
        if heading.notebook != notebook:
            continue
        name = heading.name
        start = _only(cells, "markdown", rf"^#+ Exercise {re.escape(heading.number)}: ")
        stub = _only(cells, "code", rf"^(async def|def|class) {name}\b")
        end = _only(cells, "code", rf"\bcheck\({name}\)")
        assert start < stub < end, name
        found[stub].add("exercise")
        for tags in found[start : end + 1] if heading.further else ():
            tags.add("further")
    return found


def _only(cells: Sequence[Notebook], kind: str, pattern: str) -> int:
    there = [
        index
        for index, cell in enumerate(cells)
        if cell["cell_type"] == kind and re.search(pattern, source_of(cell), re.MULTILINE)
    ]
    assert len(there) == 1, (pattern, there)
    return there[0]


def _own(cells: Sequence[Notebook]) -> Iterator[set[str]]:
    return (OURS & {*cell["metadata"].get("tags", ())} for cell in cells)


@pytest.mark.parametrize("name", NAMES)
def test_cells_have_expected_tags(name: str) -> None:
    workspace = find_workspace()
    solved = read_notebook(workspace.solutions / f"{name}.ipynb")["cells"]
    expected = {
        cell["id"]: tags for cell, tags in zip(solved, expected_tags(name, solved), strict=True)
    }
    for folder in (workspace.solutions, workspace.notebooks):
        cells = read_notebook(folder / f"{name}.ipynb")["cells"]
        own = {cell["id"]: tags for cell, tags in zip(cells, _own(cells), strict=True)}
        assert own == expected, folder.name
