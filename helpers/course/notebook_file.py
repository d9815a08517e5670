"""Read notebook files as plain data, and write them in a canonical form.

`build` and `outputs` read and write notebooks only through this module, so that a diff of a stored notebook
shows only changes in the course.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]
"""A notebook in Jupyter's on-disk format, version 4.5."""

KEPT_CELL_METADATA = frozenset({"claim", "deletable", "editable", "jupyter", "tags"})
"""Metadata that authors may set (claim: see claims.py). Editors add other metadata, such as timings and
scroll positions."""


class NotebookError(Exception):
    """A notebook of the course violates a requirement. The message gives its name, the place, and advice."""


def read_notebook(path: Path) -> Notebook:
    """Read a notebook of the course. Raises NotebookError if the file is not a notebook."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NotebookError(f"{path.name} is not a notebook: {error}") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise NotebookError(f"{path.name} is not a notebook: it has no list of cells")
    return notebook


def write_notebook(path: Path, notebook: Notebook) -> None:
    """Write a notebook so that the same content always produces the same bytes.

    The file is replaced atomically, so an interrupted write leaves the old file.
    """
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def source_of(cell: Notebook) -> str:
    """Return a cell's source as one string, because a file may store it as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def as_lines(source: str) -> list[str]:
    """Split a source into a list of lines, as notebook files store it."""
    return source.splitlines(keepends=True)


def notebook_metadata() -> Notebook:
    """Return the metadata common to all notebooks of the course, the same on every machine."""
    return {
        "kernelspec": {
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }


def cell_metadata(cell: Notebook) -> Notebook:
    """Return the metadata set by a cell's author, without an editor's or a run's metadata."""
    metadata = cell.get("metadata", {})
    return {key: value for key, value in metadata.items() if key in KEPT_CELL_METADATA}


def check_cell_ids(notebook: Notebook, name: str) -> None:
    """Raise NotebookError unless every cell has a unique id (notebook format 4.5)."""
    seen: dict[str, int] = {}
    for number, cell in enumerate(notebook["cells"], start=1):
        cell_id = cell.get("id")
        if not cell_id:
            raise NotebookError(
                f"{name}, cell {number}: the cell has no id. Save the notebook in JupyterLab 4."
            )
        if cell_id in seen:
            raise NotebookError(
                f"{name}, cell {number}: its id {cell_id!r} is also the id of cell {seen[cell_id]}. "
                "Delete one and paste it again in JupyterLab."
            )
        seen[cell_id] = number
