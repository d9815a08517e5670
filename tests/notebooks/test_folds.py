"""The recurring parts at the end of each notebook, and import cells, are folded on the screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.course.notebook_file import read_notebook, source_of
from helpers.course.workspace import find_workspace

SOLVED = sorted(find_workspace().solutions.glob("*.ipynb"))
STANDING = {
    "What changes with NCCL and GPUs",
    "In production",
    "Questions people ask",
    "Further reading",
}


@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_recurring_sections_have_complete_folds(path: Path) -> None:
    cells = read_notebook(path)["cells"]
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if cell["cell_type"] == "code":
            continue
        text = source_of(cell)
        assert text.count("<details>") == text.count("</details>")
        for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
            title = part.partition("\n")[0].removeprefix("## ")
            leads = text.endswith(part) and following and following["cell_type"] == "code"
            if title in STANDING and not leads:
                assert "<details><summary>" in part, title


@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_import_cell_hides_its_source(path: Path) -> None:
    cells = read_notebook(path)["cells"]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    assert first["metadata"]["jupyter"]["source_hidden"]
