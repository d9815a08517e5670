"""Advise on an unknown name that an earlier cell of the notebook defines.

The usual causes of a NameError are running cells out of order and restarting the kernel. So the error
explains how to run the cells above.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Sequence
from functools import partial
from types import TracebackType
from typing import Any


def advice(
    name: str,
    current: str,
    cells: Sequence[str],
    imported: Collection[str],
    exercise_names: Collection[str] = (),
) -> str:
    """Return advice on an unknown name, or "" if no earlier cell defines it.

    current: the cell that failed. cells: all code cells of the notebook. imported: names imported in the
    first cell of a notebook. exercise_names: names that may be passed to check().
    """
    if re.search(rf"\b(?:check|show_me)\(\s*{re.escape(name)}\b", current) and name not in imported:
        similar = difflib.get_close_matches(name, exercise_names, 3)
        if similar and not any(name in _names_bound_in(cell) for cell in cells):
            return f"No exercise is called {name!r}. Did you mean {' or '.join(similar)}?"
    place = next((i for i, cell in enumerate(cells) if cell.strip() == current.strip()), len(cells))
    if any(name in _names_bound_in(cell) for cell in cells[:place]):
        where = "is defined in an earlier cell"
    elif name in imported:
        where = "is imported in the notebook's first code cell"
    else:
        return ""
    return f"{name!r} {where}. Choose Run → Run All Above Selected Cell."


def _names_bound_in(source: str) -> set[str]:
    """Return the names defined in a cell; empty if it has magics or is not valid Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return set(_bound(tree.body))


def _bound(statements: list[ast.stmt]) -> list[str]:
    names: list[str] = []
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(statement.name)
            continue
        for part in ast.walk(statement):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                names.append(part.id)
            elif isinstance(part, ast.alias):
                names.append((part.asname or part.name).partition(".")[0])
    return names


def register(shell: Any, imported: Collection[str]) -> None:
    """Add the advice to a shell's NameErrors, unless the shell already has a handler."""
    if not shell.custom_exceptions:
        shell.set_custom_exc((NameError,), partial(_show, imported))


def _show(
    imported: Collection[str],
    shell: Any,
    kind: type[BaseException],
    error: NameError,
    trace: TracebackType,
    tb_offset: Any = None,
) -> None:
    if kind is NameError:  # an UnboundLocalError is about a function's variable
        # import it here, because most sessions never need it
        from helpers.checks.headings import headings
        from helpers.course.open_notebook import cells_of_open_notebook

        inputs = getattr(shell.history_manager, "input_hist_raw", None) or [""]
        cells = cells_of_open_notebook()
        if words := advice(error.name or "", inputs[-1], cells, imported, tuple(headings())):
            error.add_note(words)
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
