"""Read the file of a kernel's notebook."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from helpers.course.notebook_file import NotebookError, read_notebook, source_of

# jupyter_server sets this variable to the file of the notebook for which it starts a kernel.
_VARIABLE = "JPY_SESSION_NAME"
_MAX_BYTES = 16 << 20


def cells_of_open_notebook() -> list[str]:
    """Return the code of the cells in this kernel's notebook, as last saved."""
    return code_cells(os.environ.get(_VARIABLE, ""))


def code_cells(notebook: str) -> list[str]:
    """Return the code of a notebook's cells, or [] if there is no such file."""
    path = Path(notebook)
    # A learner's file may contain anything.
    with suppress(OSError, NotebookError, AttributeError, TypeError):
        if path.suffix == ".ipynb" and path.stat().st_size <= _MAX_BYTES:
            cells = read_notebook(path)["cells"]
            return [source_of(c) for c in cells if c.get("cell_type") == "code"]
    return []
