"""Tell an exercise that was not begun: its stub is still there.

Called by `build`. The stub is what `make notebooks` writes in place of a solution.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_BLOCKS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.With,
    ast.For,
    ast.While,
)


def stub_line(node: ast.stmt) -> int:
    """Return the line of the `raise NotImplementedError("Exercise ...")` in a definition, or 0.

    Code that is given before the stub does not count as an attempt; a stub after a `return` is dead
    code, and does not count as a stub. One unwritten method leaves a class not attempted.
    """
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return 0
    return _in_block(node.body)


def _in_block(body: Sequence[ast.stmt]) -> int:
    for statement in body:
        if _is_stub(statement):
            return statement.lineno
        if isinstance(statement, (ast.Return, ast.Raise)):
            return 0
        if isinstance(statement, _BLOCKS) and (line := _in_block(statement.body)):
            return line
    return 0


def _is_stub(statement: ast.stmt) -> bool:
    call = statement.exc if isinstance(statement, ast.Raise) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not call.args:
        return False
    text = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
    is_text = isinstance(text, str) and text.startswith("Exercise")
    return call.func.id == "NotImplementedError" and is_text
