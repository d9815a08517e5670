"""The walk over one statement that knows, at every point, which scope it is in.

`names` subclasses it to record names; this part knows Python's scopes and flow of control
(the language reference's "Naming and binding"): a name bound anywhere in a function is local to
all of it; a class body looks names up as it goes along and is invisible to its methods; a
comprehension is a scope of its own whose first iterable belongs outside; `:=` in a comprehension
binds outside it; what a branch binds is not bound for certain after it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from helpers.answers.scopes import (
    FUNCTIONS,
    Comprehension,
    Function,
    Scope,
    bound_in_function,
)


class ScopeWalker(ast.NodeVisitor):
    """Walk a statement. `scope` is where the walk is.

    deferred: inside a function or lambda, which runs when it is called. in_definition: inside a
    `def`, which unlike a lambda is hardly ever called by the statement that holds it.
    """

    def __init__(self) -> None:
        self.module = Scope("module")
        self.scope = self.module
        self.deferred = False
        self.in_definition = False
        self.awaits = False

    def use(self, name: str) -> None:
        raise NotImplementedError

    def bind(self, name: str) -> None:
        raise NotImplementedError

    def annotation(self, node: ast.expr | None) -> None:
        raise NotImplementedError

    def decorator(self, node: ast.expr) -> None:
        raise NotImplementedError

    # --- scopes ----------------------------------------------------------------------------------

    @contextmanager
    def _inside(self, scope: Scope, deferred: bool) -> Iterator[None]:
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
        for decorator in node.decorator_list:
            self.decorator(decorator)
        self.visit_all((*node.args.defaults, *node.args.kw_defaults))
        with self._type_parameters(node):
            for argument in _arguments(node.args):
                self.annotation(argument.annotation)
            self.annotation(node.returns)
            in_definition, self.in_definition = self.in_definition, True
            self._body(node, node.body)
            self.in_definition = in_definition
        self.bind(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit_all((*node.args.defaults, *node.args.kw_defaults))
        self._body(node, [node.body])

    def _body(self, node: Function, body: Iterable[ast.AST]) -> None:
        bound, global_names = bound_in_function(node)
        with self._inside(Scope("function", self.scope, bound, global_names), deferred=True):
            self.visit_all(body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.decorator(decorator)
        with self._type_parameters(node):
            self.visit_all((*node.bases, *node.keywords))
            with self._inside(Scope("class", self.scope), self.deferred):
                self.visit_all(node.body)
        self.bind(node.name)

    def visit_Global(self, node: ast.Global) -> None:
        if self.scope.kind == "class":  # a function's are known before its body is walked
            self.scope.global_names.update(node.names)

    @contextmanager
    def _type_parameters(self, node: ast.AST) -> Iterator[None]:
        parameters = getattr(node, "type_params", ())  # Python 3.12: def f[T](...)
        scope = Scope("function", self.scope, {p.name for p in parameters}) if parameters else None
        with self._inside(scope or self.scope, self.deferred):
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
        with self._inside(Scope("comprehension", self.scope, bound), self.deferred):
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
        self.annotation(node.annotation)
        if node.value is not None:  # `x: int` alone binds nothing
            self.visit_all((node.value, node.target))

    # --- flow: what may not run -------------------------------------------------------------------

    def _block(self, body: Iterable[ast.AST]) -> set[str]:
        """Walk a part that may not run; return what is bound at its end, and forget it outside."""
        if self.scope.kind in FUNCTIONS:
            self.visit_all(body)
            return set()
        before = self.scope.bound
        self.scope.bound = inside = set(before)
        self.visit_all(body)
        self.scope.bound = before
        return inside

    def _join(self, branches: list[set[str]]) -> None:
        self.scope.bound |= set.intersection(*branches)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._join([self._block(node.body), self._block(node.orelse)])

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._block((node.target, *node.body))
        self._block(node.orelse)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self.awaits |= not self.deferred
        self.visit_For(node)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._block(node.body)
        self._block(node.orelse)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        branches = [self._block((*node.body, *node.orelse))]
        for handler in node.handlers:
            bound = self._block([handler])
            if not isinstance(handler.body[-1], ast.Raise):
                branches.append(bound)
        self._join(branches)
        self.visit_all(node.finalbody)

    visit_TryStar = visit_Try

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            self._block([case])

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        self.awaits |= not self.deferred
        self.generic_visit(node)

    def visit_Await(self, node: ast.Await) -> None:
        self.awaits |= not self.deferred
        self.generic_visit(node)

    # --- names bound as plain text in the tree ----------------------------------------------------

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.visit_all([node.type])
        if node.name:
            self.bind(node.name)
        self.visit_all(node.body)

    def _pattern(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        self.generic_visit(node)
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.bind(name)

    visit_MatchAs = _pattern
    visit_MatchStar = _pattern
    visit_MatchMapping = _pattern


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (a for a in (arguments.vararg, arguments.kwarg) if a is not None)
