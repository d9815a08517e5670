"""Make small changes to a right answer, as mutation testing does. Nearly all of them are mistakes.

Text is changed in place, so that lines keep their numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED = {
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<",),
    ast.Gt: (">=", "<"),
    ast.GtE: (">",),
    ast.In: ("not in",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}
_COMPUTED = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "//",
    ast.BitXor: "|",
}
_COPIES = {"clone", "contiguous", "detach", "double", "float"}
"""Methods that change only memory or dtype. Leaving them out is tempting, and often wrong."""

_SYMMETRIC = {"max", "min", "torch.maximum", "torch.minimum"}


@dataclass(frozen=True)
class Mutant:
    """A changed answer. change: its line before and after."""

    change: str
    source: str


def mutants(source: str, names: set[str]) -> Iterator[Mutant]:
    """Return the mutants of the functions and classes with these names in a source, without duplicates."""
    seen = {source}
    for top in ast.parse(source).body:
        if isinstance(top, (ast.FunctionDef, ast.ClassDef)) and top.name in names:
            for node, new in _changes(top):
                changed = _spliced(source, node, new)
                if changed is not None and changed not in seen:
                    seen.add(changed)
                    yield Mutant(_describe_change(source, changed), changed)


def _changes(top: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Return each node to be replaced, with its replacement text."""
    unreachable = set(map(id, _after_a_return(top)))
    for node in ast.walk(top):
        if id(node) in unreachable:
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            for sign in _COMPARED.get(type(node.ops[0]), ()):
                yield node, f"({left} {sign} {right})"
        elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
            sign = _COMPUTED[type(node.op)]
            yield node, f"({ast.unparse(node.left)} {sign} {ast.unparse(node.right)})"
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield node, str(not node.value)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield node, str(node.value + 1)
        elif isinstance(node, ast.AugAssign) or _is_a_call(node):
            yield node, "pass"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            yield node, f"({ast.unparse(node.operand)})"
        elif isinstance(node, (ast.If, ast.IfExp)):
            yield node.test, f"(not ({ast.unparse(node.test)}))"
        elif isinstance(node, ast.Call):
            yield from _mutate_call(node)


def _after_a_return(top: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes after a `return` in its block, such as the faulty script that a solution replaces."""
    for node in ast.walk(top):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            ends = [i for i, each in enumerate(body) if isinstance(each, ast.Return)]
            for each in body[ends[0] + 1 :] if ends else ():
                yield from ast.walk(each)


def _is_a_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _mutate_call(node: ast.Call) -> Iterator[tuple[ast.AST, str]]:
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in _COPIES and not node.args:
        yield node, ast.unparse(function.value)
    for left_out in node.keywords:
        others = [keyword for keyword in node.keywords if keyword is not left_out]
        yield node, ast.unparse(ast.Call(function, node.args, others))
    if ast.unparse(function) in _SYMMETRIC:
        return
    if len(node.args) == 2 and not any(isinstance(arg, ast.Starred) for arg in node.args):
        yield node, ast.unparse(ast.Call(function, node.args[::-1], node.keywords))


def _spliced(source: str, node: ast.AST, new: str) -> str | None:
    """Replace a node by text; return "" if the result is not Python, or the node has no position."""
    first = getattr(node, "lineno", None)
    if first is None:
        return None
    lines = source.splitlines(keepends=True)
    last: int = node.end_lineno  # type: ignore[attr-defined]
    head = lines[first - 1].encode()[: node.col_offset].decode()  # type: ignore[attr-defined]
    tail = lines[last - 1].encode()[node.end_col_offset :].decode()  # type: ignore[attr-defined]
    filler = "\n" * (last - first)  # the lines after it keep their numbers
    changed = "".join([*lines[: first - 1], head + new + tail, filler, *lines[last:]])
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return changed


def _describe_change(before: str, after: str) -> str:
    for old, new in zip(before.splitlines(), after.splitlines(), strict=False):
        if old != new:
            return f"{old.strip()} -> {new.strip()}"
    raise ValueError("nothing has changed")
