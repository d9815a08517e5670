"""Answers as text that does not change with their looks: a key under which results are kept."""

from __future__ import annotations

import ast

from helpers.answers.data import Answer
from helpers.answers.listing import parse_quietly

_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def normalise(answer: Answer) -> str:
    """Return the answer's source without comments, docstrings and formatting."""
    try:
        tree = parse_quietly(answer.source)
        for node in ast.walk(tree):
            if isinstance(node, _DOCUMENTED):
                _drop_docstring(node)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return answer.source


def _drop_docstring(
    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
) -> None:
    first = node.body[0] if node.body else None
    value = first.value if isinstance(first, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
