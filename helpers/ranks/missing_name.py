"""Explain a name that the ranks of `%%ranks` do not have: where it is defined, and how ranks get it.

`magics` calls this when a cell has raised NameError. Ranks see neither the notebook's names nor those of
ranks that have ended.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Mapping
from typing import Any

from helpers.ranks.own_modules import is_learner_object

_DEFINING_OPS = {"STORE_NAME", "STORE_GLOBAL"}


def names_defined_by(code: types.CodeType) -> set[str]:
    """Return the names that a cell defines at its top level."""
    return {str(step.argval) for step in dis.get_instructions(code) if step.opname in _DEFINING_OPS}


def advice_for_name(
    name: str, kernel: Mapping[str, Any], lost_names: Mapping[str, str], line: str
) -> str:
    """Return how ranks can get a name; "" if neither the kernel nor earlier ranks had it.

    Args:
        name: The name that was not found.
        kernel: The names of the notebook.
        lost_names: For each name that was defined on ranks that have ended, the cell that defined it.
        line: The first line of the cell, with `name` among the names to send.
    """
    ways = []
    if name in lost_names:
        ways.append(
            f"`{name}` was defined in {lost_names[name]}, on ranks that have been terminated. Run that "
            "cell again."
        )
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
        return f"Only the notebook has `{name}`. {unsendable.describe_unsendable(name, value)}"
    send = f"end it to the ranks: `{line}`."
    if isinstance(
        value, (type, types.FunctionType, types.BuiltinFunctionType)
    ) and not is_learner_object(value):
        return f"`{name}` is defined only in the notebook. Import it in this cell, or s{send}"
    return f"`{name}` is defined only in the notebook. S{send}"
