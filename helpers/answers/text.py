"""Answers as text: one that does not change with their looks, a key for results; what they define."""

from __future__ import annotations

import ast

from helpers.answers.data import Answer
from helpers.answers.listing import parse_quietly

_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def normalize(answer: Answer) -> str:
    """Return the answer's source without comments, docstrings and formatting."""
    try:
        tree = parse_quietly(answer.source)
        for node in ast.walk(tree):
            if isinstance(node, _DOCUMENTED):
                _drop_docstring(node)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return answer.source


def defined_in(answer: Answer) -> list[str]:
    """Return the names of the functions and classes that the answer's source defines, each once."""
    try:
        tree = parse_quietly(answer.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return list(dict.fromkeys(node.name for node in tree.body if isinstance(node, kinds)))


def _drop_docstring(
    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
) -> None:
    first = node.body[0] if node.body else None
    value = first.value if isinstance(first, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
