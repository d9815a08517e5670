"""Walk over one statement, keeping track of the scope at every point.

`names` subclasses `ScopeWalker` to record names. The rules are those of "Naming and binding" in the language
reference, and of the flow of control. A name bound anywhere in a function is local to all of it. A class body
looks names up as it runs, and its methods do not see its names. A comprehension is a separate scope, but its
first iterable is evaluated outside it, and `:=` inside it binds a name outside it. A name bound in a branch
may be unbound after the branch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
FUNCTIONS = ("function", "comprehension")


@dataclass(eq=False)
class Scope:
    """One scope. bound: its names; for a module or class body, only the names bound so far."""

    kind: Literal["module", "class", "function", "comprehension"]
    parent: Scope | None = None
    bound: set[str] = field(default_factory=set)
    global_names: set[str] = field(default_factory=set)

    def is_global(self, name: str) -> bool:
        """Return whether a lookup of `name` in this scope finds a module-level name, or nothing."""
        scope: Scope | None = self
        deferred = False
        while scope is not None:
            if name in scope.global_names:
                return True
            visible = scope is self or scope.kind in FUNCTIONS
            if scope.kind == "module":
                # A function looks the name up when it is called, so the last binding counts.
                return deferred or name not in scope.bound
            if visible and name in scope.bound:
                return False
            deferred |= scope.kind == "function"
            scope = scope.parent
        return True

    def owner(self) -> Scope:
        """Return the scope of bindings made in this scope: `:=` binds names outside its comprehension."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope


class ScopeWalker(ast.NodeVisitor):
    """Walks over a statement.

    Attributes:
        scope: The scope at the current point of the walk.
        deferred: Whether this point is inside a function or lambda, which runs when it is called.
        in_definition: Whether this point is inside a `def`. In contrast to a lambda, a `def` is hardly ever
            called by the statement that contains it.
    """

    def __init__(self) -> None:
        self.module = Scope("module")
        self.scope = self.module
        self.deferred = False
        self.in_definition = False
        self.awaits = False

    def use(self, name: str) -> None:
        """Record the lookup of a name."""

    def bind(self, name: str) -> None:
        """Record that a name is bound or deleted."""

    def visit_annotation(self, node: ast.expr | None, is_local: bool = False) -> None:
        """Walk an annotation. is_local: whether it annotates a function's variable and is never evaluated."""
        self.visit_all([node])

    def visit_decorator(self, node: ast.expr) -> None:
        self.visit(node)

    # --- scopes ----------------------------------------------------------------------------------

    @contextmanager
    def _enter_scope(self, scope: Scope, deferred: bool) -> Iterator[None]:
        outer, was_deferred = self.scope, self.deferred
        self.scope, self.deferred = scope, deferred
        try:
            yield
        finally:
            self.scope, self.deferred = outer, was_deferred

    def visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        # visit them in the order in which Python evaluates them, outside the function
        for decorator in node.decorator_list:
            self.visit_decorator(decorator)
        self.visit_all((*node.args.defaults, *node.args.kw_defaults))
        with self._type_parameters(node):
            for argument in _arguments(node.args):
                self.visit_annotation(argument.annotation)
            self.visit_annotation(node.returns)
            in_definition, self.in_definition = self.in_definition, True
            self._visit_body(node, node.body)
            self.in_definition = in_definition
        self.bind(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit_all((*node.args.defaults, *node.args.kw_defaults))
        self._visit_body(node, [node.body])

    def _visit_body(self, node: Function, body: Iterable[ast.AST]) -> None:
        with self._enter_scope(
            Scope("function", self.scope, *bound_in_function(node)), deferred=True
        ):
            self.visit_all(body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.visit_decorator(decorator)
        with self._type_parameters(node):
            self.visit_all((*node.bases, *node.keywords))
            with self._enter_scope(Scope("class", self.scope), self.deferred):
                self.visit_all(node.body)
        self.bind(node.name)

    def visit_Global(self, node: ast.Global) -> None:
        if self.scope.kind == "class":  # a function's names are known before the walk
            self.scope.global_names.update(node.names)

    @contextmanager
    def _type_parameters(self, node: ast.AST) -> Iterator[None]:
        parameters = getattr(node, "type_params", ())  # Python 3.12: def f[T](...)
        scope = Scope("function", self.scope, {p.name for p in parameters}) if parameters else None
        with self._enter_scope(scope or self.scope, self.deferred):
            for parameter in parameters:
                self.generic_visit(parameter)
            yield

    def visit_TypeAlias(self, node: ast.AST) -> None:  # Python 3.12: type X = ...
        with self._type_parameters(node):
            self.visit(node.value)  # type: ignore[attr-defined]
        self.visit(node.name)  # type: ignore[attr-defined]

    def _comprehension(self, node: Comprehension) -> None:
        self.visit(node.generators[0].iter)
        bound: set[str] = set()
        for generator in node.generators:
            targets = (n for n in ast.walk(generator.target) if isinstance(n, ast.Name))
            bound.update(n.id for n in targets if isinstance(n.ctx, ast.Store))
            self.awaits |= bool(generator.is_async) and not self.deferred
        with self._enter_scope(Scope("comprehension", self.scope, bound), self.deferred):
            for index, generator in enumerate(node.generators):
                self.visit_all([generator.iter] if index else [])
                self.visit_all(generator.ifs)
            self.visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])

    visit_ListComp = _comprehension
    visit_SetComp = _comprehension
    visit_GeneratorExp = _comprehension
    visit_DictComp = _comprehension

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.bind(node.target.id)

    # --- order: values before targets -------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit_all((node.value, *node.targets))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.use(node.target.id)
        self.visit(node.target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit_annotation(node.annotation, is_local=self.scope.kind in FUNCTIONS)
        if node.value is not None:  # `x: int` alone binds nothing
            self.visit_all((node.value, node.target))

    # --- flow: parts that may not run -------------------------------------------------------------

    def _visit_block(self, body: Iterable[ast.AST]) -> set[str]:
        """Walk a part that may not run. Return the names bound at its end, without binding them outside."""
        if self.scope.kind in FUNCTIONS:
            self.visit_all(body)
            return set()
        before = self.scope.bound
        self.scope.bound = inside = set(before)
        self.visit_all(body)
        self.scope.bound = before
        return inside

    def _join_branches(self, branches: list[set[str]]) -> None:
        self.scope.bound |= set.intersection(*branches)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._join_branches([self._visit_block(node.body), self._visit_block(node.orelse)])

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._visit_block((node.target, *node.body))  # the body may not run at all
        self._visit_block(node.orelse)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self.awaits |= not self.deferred
        self.visit_For(node)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._visit_block(node.body)
        self._visit_block(node.orelse)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        branches = [self._visit_block((*node.body, *node.orelse))]
        for handler in node.handlers:
            bound = self._visit_block([handler])
            # if a handler raises, no code below it runs
            if not isinstance(handler.body[-1], ast.Raise):
                branches.append(bound)
        self._join_branches(branches)
        self.visit_all(node.finalbody)

    visit_TryStar = visit_Try

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            self._visit_block([case])

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        self.awaits |= not self.deferred
        self.generic_visit(node)

    def visit_Await(self, node: ast.Await) -> None:
        self.awaits |= not self.deferred
        self.generic_visit(node)

    # --- names ------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self.use(node.id)
        if not isinstance(node.ctx, ast.Load):
            self.bind(node.id)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.bind(imported_name(alias))

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.visit_all([node.type])
        if node.name:
            self.bind(node.name)
        self.visit_all(node.body)

    def _visit_pattern(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        self.generic_visit(node)
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.bind(name)

    visit_MatchAs = _visit_pattern
    visit_MatchStar = _visit_pattern
    visit_MatchMapping = _visit_pattern


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (a for a in (arguments.vararg, arguments.kwarg) if a is not None)


class _Binder(ScopeWalker):
    """Finds the names bound by a function. Walks its body, but not the bodies of inner functions."""

    def __init__(self) -> None:
        super().__init__()
        self.scope = self.function = Scope("function", self.module)
        self.elsewhere: set[str] = set()

    def bind(self, name: str) -> None:
        if self.scope.owner() is self.function:
            self.function.bound.add(name)

    def _visit_body(self, node: Function, body: Iterable[ast.AST]) -> None:
        """Skip an inner function."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        super().visit_AnnAssign(node)
        self.visit(node.target)  # in a function, `x: int` alone makes x local

    def visit_Global(self, node: ast.Global) -> None:
        if self.scope is self.function:
            self.function.global_names.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        if self.scope is self.function:
            self.elsewhere.update(node.names)


def bound_in_function(node: Function) -> tuple[set[str], set[str]]:
    """Return (local names, names declared global) of a function, without those of nested functions.

    `symtable` also provides them, but needs a complete source that compiles, identifies functions only by
    line, and renames `__x` in a class. The tests compare the two.
    """
    binder = _Binder()
    binder.visit_all(node.body if isinstance(node.body, list) else [node.body])
    found = binder.function
    found.bound.update(argument.arg for argument in _arguments(node.args))
    return found.bound - found.global_names - binder.elsewhere, found.global_names


def imported_name(alias: ast.alias) -> str:
    """Return the name that one part of an import binds: `import a.b` binds a."""
    return alias.asname or alias.name.split(".")[0]


def root_name(node: ast.AST) -> str:
    """Return the variable at the root of `C.f`, `table["x"].y` or `xs[0]`, or "" if there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
