"""Find the module-level names that one top-level statement binds, changes, uses and calls.

`listing` calls this module for the statements of a learner's cells. `closure` follows the names from
statement to statement. Only the syntax tree is read, and nothing is imported or executed.

A use is *now* if the statement itself uses the name when it runs: in decorators, defaults, annotations,
base classes, class bodies. It is *later* if a function or lambda defined by the statement uses the name when
called. This difference determines which of several definitions of a name counts.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from helpers.answers.scopes import ScopeWalker, imported_name, root_name

_ATTRIBUTE_SETTERS = frozenset({"setattr", "delattr"})

Path = tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """The module-level names of one top-level statement.

    Args:
        binds: Names bound whenever the statement runs.
        may_bind: Names bound only on some paths, or names of extended objects (`import a.b`).
        now, later: Names used when the statement runs, and names used when its functions run.
        at_once: Names of `later` that it may already use when it runs, because it may call lambdas (or, in a
            class body, functions) defined inside it.
        hints: Names in annotations that are strings, or that Python does not evaluate.
        set_globally: Names bound by its functions, through `global`.
        stores: Names whose objects it changes by assignment (`C.f = g`, setattr).
        registers: Names used in decorators such as `@registry.add`.
        pokes: Names whose objects it may change by a bare method call (`xs.append(1)`).
        calls_now, calls_later: Dotted paths of called objects; the root is "" if it is not a global name.
        awaits: Whether the statement needs a running event loop.
        star: Whether it contains `from x import *`.
    """

    binds: frozenset[str]
    may_bind: frozenset[str]
    now: frozenset[str]
    later: frozenset[str]
    at_once: frozenset[str]
    hints: frozenset[str]
    set_globally: frozenset[str]
    stores: frozenset[str]
    registers: frozenset[str]
    pokes: frozenset[str]
    calls_now: frozenset[Path]
    calls_later: frozenset[Path]
    awaits: bool
    star: bool


def names_of(statement: ast.stmt, postponed: bool = False) -> Names:
    """Return the names of one top-level statement. Raise RecursionError on absurdly deep code.

    postponed: whether annotations are not evaluated (`from __future__ import annotations`).
    """
    walker = _Recorder(postponed)
    walker.visit(statement)
    return walker.names()


class _Recorder(ScopeWalker):
    def __init__(self, postponed: bool) -> None:
        super().__init__()
        self.postponed = postponed
        self.ever_bound: set[str] = set()
        self.used: dict[bool, set[str]] = {False: set(), True: set()}
        self.called: dict[bool, set[Path]] = {False: set(), True: set()}
        self.in_lambdas: set[str] = set()
        self.calls_its_own = False
        self.hints: set[str] = set()
        self.set_globally: set[str] = set()
        self.stores: set[str] = set()
        self.registers: set[str] = set()
        self.pokes: set[str] = set()
        self.star = False

    def names(self) -> Names:
        binds = frozenset(self.module.bound)
        return Names(
            binds=binds,
            may_bind=frozenset(self.ever_bound) - binds,
            now=frozenset(self.used[False]),
            later=frozenset(self.used[True]),
            at_once=frozenset(self.used[True] if self.calls_its_own else self.in_lambdas),
            hints=frozenset(self.hints),
            set_globally=frozenset(self.set_globally),
            stores=frozenset(self.stores),
            registers=frozenset(self.registers),
            pokes=frozenset(self.pokes),
            calls_now=frozenset(self.called[False]),
            calls_later=frozenset(self.called[True]),
            awaits=self.awaits,
            star=self.star,
        )

    # --- names -----------------------------------------------------------------------------------

    def use(self, name: str) -> None:
        if self.scope.is_global(name):
            self.used[self.deferred].add(name)
            if self.deferred and not self.in_definition:
                self.in_lambdas.add(name)

    def bind(self, name: str) -> None:
        owner = self.scope.owner()
        is_global = owner is self.module or name in owner.global_names
        if is_global and self.deferred:
            self.used[True].add(name)
            self.set_globally.add(name)
        elif is_global:
            self.module.bound.add(name)
            self.ever_bound.add(name)
        elif owner.kind == "class":
            owner.bound.add(name)  # a function's names are known before its body is walked

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = imported_name(alias)
            if name == "*":
                self.star = True
            elif isinstance(node, ast.Import) and not alias.asname and self.scope is self.module:
                # `import torch` after `import torch.nn.utils` extends the same object, so both are kept.
                self.ever_bound.add(name)
            else:
                self.bind(name)

    visit_ImportFrom = visit_Import

    def visit_annotation(self, node: ast.expr | None, is_local: bool = False) -> None:
        if node is None:
            return
        if self.postponed or is_local:
            self._add_hint_names(node)
        else:
            self.visit(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                self._hint(part.value)

    def _hint(self, text: str) -> None:
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError):
            return  # the string is not a type, as in Literal["two words"]
        self._add_hint_names(tree)

    def _add_hint_names(self, tree: ast.AST) -> None:
        loaded = (part.id for part in ast.walk(tree) if isinstance(part, ast.Name))
        self.hints.update(name for name in loaded if self.scope.is_global(name))

    # --- changes to objects ----------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._record_store(node)
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._record_store(node)
        self.generic_visit(node)

    def _record_store(self, target: ast.Attribute | ast.Subscript) -> None:
        if not isinstance(target.ctx, ast.Load) and self.scope is self.module:
            self._add_root(self.stores, root_name(target))

    @staticmethod
    def _add_root(roots: set[str], root: str) -> None:
        if root:
            roots.add(root)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and self.scope is self.module:
            if isinstance(call.func, ast.Attribute):
                kind = self.registers if call.func.attr.startswith("register") else self.pokes
                self._add_root(kind, root_name(call.func))
            elif (
                isinstance(call.func, ast.Name) and call.func.id in _ATTRIBUTE_SETTERS and call.args
            ):
                self._add_root(self.stores, root_name(call.args[0]))
        self.visit(call)

    def visit_decorator(self, node: ast.expr) -> None:
        called = node.func if isinstance(node, ast.Call) else node
        if isinstance(called, ast.Attribute) and self.scope is self.module:
            self._add_root(self.registers, root_name(called))
        if isinstance(node, ast.Call):
            # This does not count as a call, because `@span("work")` computes no value.
            self.visit_all((node.func, *node.args, *node.keywords))
        else:
            self.visit(node)

    # --- calls -----------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        path = self._path(node.func)
        # include the root, so that a call of a local function named `open` is not mistaken for the builtin
        self.called[self.deferred].add(path)
        # In a class body or branch, this may call a function defined a few lines above.
        self.calls_its_own |= not self.deferred and isinstance(node.func, ast.Name) and not path[0]
        self.generic_visit(node)

    def _path(self, func: ast.expr) -> Path:
        attributes: list[str] = []
        while isinstance(func, ast.Attribute):
            attributes.append(func.attr)
            func = func.value
        is_global = isinstance(func, ast.Name) and self.scope.is_global(func.id)
        root = func.id if isinstance(func, ast.Name) and is_global else ""
        return (root, *reversed(attributes))
