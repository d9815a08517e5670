"""Read facts for advice from an answer's source: its parameters, and whether its end can be reached."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class AnswerShape:
    """Facts about the source of an answer that is a function.

    parameters: their names, or () if their number is not fixed. may_return_nothing: whether a path through
    the function ends without returning a value. An explicit `return None` does not count, because it is
    intended. returned_call: the call to torch.distributed whose result is returned, for example
    `dist.all_reduce`, or "".
    """

    parameters: tuple[str, ...] = ()
    may_return_nothing: bool = False
    returned_call: str = ""


NO_SHAPE = AnswerShape()


def shape_of(program: str, name: str) -> AnswerShape:
    """Return the shape of the function `name`; an empty shape for a class or an unreadable program."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        for statement in ast.parse(program).body:
            if isinstance(statement, ast.FunctionDef) and statement.name == name:
                return AnswerShape(
                    _parameters(statement.args),
                    _may_return_nothing(statement),
                    _returned_call(statement),
                )
    return NO_SHAPE


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    if arguments.vararg or arguments.kwonlyargs:
        return ()
    return tuple(argument.arg for argument in (*arguments.posonlyargs, *arguments.args))


def _may_return_nothing(function: ast.FunctionDef) -> bool:
    returns_nothing = any(
        node.value is None for node in _own_nodes(function) if isinstance(node, ast.Return)
    )
    return returns_nothing or _may_reach_end(function.body)


def _returned_call(function: ast.FunctionDef) -> str:
    nodes = sorted(_own_nodes(function), key=_line_of)
    assigned = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if isinstance(node, ast.Return) and node.value:
            value = node.value
            if isinstance(value, ast.Name):
                value = assigned.get(value.id, value)
            if isinstance(value, ast.Call) and ast.unparse(value.func).startswith("dist."):
                return ast.unparse(value.func)
    return ""


def _line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions and classes inside it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def _may_reach_end(body: Sequence[ast.stmt]) -> bool:
    """Return whether execution may continue after a block's last statement; False if in doubt."""
    return all(_may_pass(statement) for statement in body)


def _may_pass(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        return False
    if isinstance(statement, ast.If):
        return _may_reach_end(statement.body) or _may_reach_end(statement.orelse)
    if isinstance(statement, ast.With):
        return _may_reach_end(statement.body)
    if isinstance(statement, ast.Try):
        ends = [
            statement.body + statement.orelse,
            *(handler.body for handler in statement.handlers),
        ]
        return _may_reach_end(statement.finalbody) and any(map(_may_reach_end, ends))
    if isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant):
        return not statement.test.value or any(
            isinstance(node, ast.Break) for node in ast.walk(statement)
        )
    if isinstance(statement, ast.Match):
        has_default = any(
            isinstance(case.pattern, ast.MatchAs)
            and case.pattern.pattern is None
            and not case.guard
            for case in statement.cases
        )
        return not has_default or any(_may_reach_end(case.body) for case in statement.cases)
    return True
