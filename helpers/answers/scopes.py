"""Scopes of Python's names, as the walk in `names` goes through them.

Handed on: `Scope` (is this name a module-level one, seen from here?) and `bound_in_function` (the
names that are local to a function, wherever in it they are bound).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
FUNCTIONS = ("function", "comprehension")


@dataclass(eq=False)
class Scope:
    """One scope. bound: its own names; for a module or class body only those bound so far."""

    kind: Literal["module", "class", "function", "comprehension"]
    parent: Scope | None = None
    bound: set[str] = field(default_factory=set)
    global_names: set[str] = field(default_factory=set)

    def is_global(self, name: str) -> bool:
        """Tell whether a name looked up here is found among the module's names, or nowhere."""
        scope: Scope | None = self
        deferred = False
        while scope is not None:
            if name in scope.global_names:
                return True
            visible = scope is self or scope.kind in FUNCTIONS
            if scope.kind == "module":
                # A function looks the name up when it is called: then the last binding counts.
                return deferred or name not in scope.bound
            if visible and name in scope.bound:
                return False
            deferred |= scope.kind == "function"
            scope = scope.parent
        return True

    def owner(self) -> Scope:
        """The scope in which a binding made here lands: a comprehension's `:=` binds outside it."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope


def bound_in_function(node: Function) -> tuple[set[str], set[str]]:
    """Return (local names, names declared global) of a function, nested functions left out."""
    arguments = node.args
    bound = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    bound |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
    global_names: set[str] = set()
    outer_names: set[str] = set()
    pending: list[tuple[ast.AST, bool]] = []
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    pending.extend((child, False) for child in body)
    while pending:
        child, in_comprehension = pending.pop()
        if isinstance(child, ast.Global):
            global_names.update(child.names)
        elif isinstance(child, ast.Nonlocal):
            outer_names.update(child.names)
        bound.update(_bound_here(child, in_comprehension))
        inner = in_comprehension or isinstance(child, Comprehension)
        if isinstance(child, ast.NamedExpr):
            bound.add(child.target.id)
            pending.append((child.value, inner))
        else:
            pending.extend((part, inner) for part in _parts_that_run(child))
    return bound - global_names - outer_names, global_names


def _parts_that_run(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that run in the scope that holds it: not the body of a function or class."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        yield from getattr(node, "decorator_list", ())
        yield from (d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None)
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
    else:
        yield from ast.iter_child_nodes(node)


def _bound_here(node: ast.AST, in_comprehension: bool) -> list[str]:
    if isinstance(node, ast.Name):
        stored = not isinstance(node.ctx, ast.Load) and not in_comprehension
        return [node.id] if stored else []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [imported_name(alias) for alias in node.names]
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def imported_name(alias: ast.alias) -> str:
    """The name that one part of an import binds: `import a.b` binds a."""
    return alias.asname or alias.name.split(".")[0]


def root_name(node: ast.AST) -> str:
    """The variable at the root of `C.f`, `table["x"].y` or `xs[0]`; "" where there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
