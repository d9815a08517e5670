"""Explain a name missing on the ranks of `%%ranks`: where it is defined, and how ranks can receive it.

`magics` calls this when a cell has raised NameError. Ranks see neither the notebook's names nor those of
earlier ranks.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helpers.ranks.own_modules import is_learner_object

_DEFINING_OPS = {"STORE_NAME", "STORE_GLOBAL"}
_READING_OPS = {"LOAD_NAME", "LOAD_GLOBAL"}


def names_defined_by(code: types.CodeType) -> set[str]:
    """Return the names that a cell defines at its top level."""
    return {str(step.argval) for step in dis.get_instructions(code) if step.opname in _DEFINING_OPS}


def names_read_by(code: types.CodeType) -> set[str]:
    """Return the names that a cell reads before defining them, or that its functions may read."""
    read, defined = set[str](), set[str]()
    for step in dis.get_instructions(code):
        if step.opname in _DEFINING_OPS:
            defined.add(str(step.argval))
        elif step.opname in _READING_OPS and step.argval not in defined:
            read.add(str(step.argval))
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return read.union(*(names_read_by(each) - defined for each in inner))


@dataclass(frozen=True)
class DefiningCell:
    """A `%%ranks` cell. defined: the names that it defines. read: the names that it may read."""

    name: str
    defined: frozenset[str]
    read: frozenset[str]


def defining_cell(name: str, code: types.CodeType) -> DefiningCell:
    """Return a cell with its defined and read names. name: the reader's name for the cell."""
    return DefiningCell(name, frozenset(names_defined_by(code)), frozenset(names_read_by(code)))


def cells_to_rerun(name: str, cells: Sequence[DefiningCell]) -> list[str]:
    """Return the cells that together define a name again, in the order in which they ran.

    cells: the cells of ranks that have ended, in order. For each needed cell, the earlier cells that define
    its names are needed too, for example `y = 1` for `y += 1`.
    """
    needed: list[DefiningCell] = []
    wanted = {name}
    for cell in reversed(cells):
        if wanted & cell.defined:
            needed.insert(0, cell)
            wanted = (wanted - cell.defined) | cell.read
    return list(dict.fromkeys(cell.name for cell in needed))


def advice_for_name(
    name: str, kernel: Mapping[str, Any], lost_cells: Sequence[DefiningCell], line: str
) -> str:
    """Return advice on getting a name onto the ranks; "" if neither the kernel nor earlier ranks had it.

    Args:
        name: The name that was not found.
        kernel: The names of the notebook.
        lost_cells: The cells that ran on earlier ranks, which have ended, in order.
        line: The first line of the cell, with `name` among the names to send.
    """
    ways = []
    if cells := cells_to_rerun(name, lost_cells):
        again = (
            "Run that cell again." if len(cells) == 1 else "Run these cells again, in this order."
        )
        where = " and ".join(filter(None, (", ".join(cells[:-1]), cells[-1])))
        ways.append(f"`{name}` was defined in {where}, on ranks that have been terminated. {again}")
    if name in kernel:
        ways.append(_advice_for_name_of_kernel(name, kernel[name], line))
    return "\n".join(ways)


def _advice_for_name_of_kernel(name: str, value: Any, line: str) -> str:
    from helpers.ranks import unsendable

    if isinstance(value, types.ModuleType):
        full = value.__name__
        line = f"import {full}" if name == full else f"import {full} as {name}"
        return f"`{name}` is a module that only the notebook has imported. Import it in this cell: `{line}`."
    if unsendable.is_process_bound(value):
        return (
            f"`{name}` exists only in the notebook. {unsendable.describe_unsendable(name, value)}"
        )
    send = f"end it to the ranks: `{line}`."
    if isinstance(
        value, (type, types.FunctionType, types.BuiltinFunctionType)
    ) and not is_learner_object(value):
        return f"`{name}` is defined only in the notebook. Import it in this cell, or s{send}"
    return f"`{name}` is defined only in the notebook. S{send}"
