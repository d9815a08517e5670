"""Find statements whose value cannot be computed again when the answer is graded.

`closure` asks for each statement that it is about to include. A value from a different run (`launch`,
`check`, ...), from a file, from the keyboard or from the kernel is not available in a rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from helpers.answers.listing import Listing, Position, Statement
from helpers.answers.names import Path

COURSE_PACKAGE = "helpers"
_STARTS_RANKS = frozenset(
    {"launch", "check", "hint", "predict", "timeline", "traffic", "wait_graph"}
)
_ALLOWED_IN_RANKS = frozenset({"span"})
_READING_CALLS = frozenset(
    {"open", "read_text", "read_bytes", "loadtxt", "genfromtxt", "fromfile", "memmap"}
    | {"read_csv", "read_json"}
)
_KERNEL = "get_ipython"
_EXTERNAL = {
    "open": "reads a file (`open`)",
    "input": "asks for input (`input`)",
    _KERNEL: "asks the notebook's kernel (a magic or a shell line)",
}


def find_external_value(listing: Listing, statement: Statement) -> str:
    """Return the statement's external source ("calls `launch`"), or "" if it needs only the cells.

    Calls are followed through the learner's functions, but not the calls of functions passed to them.
    """
    # Only follow calls, because passing a function, for example as a callback, computes no value here.
    pending = [(path, statement.node) for path in sorted(statement.names.calls_now)]
    followed: set[Position] = set()
    while pending:
        path, caller = pending.pop()
        binders = listing.binders_at(path[0], statement.position) if path[0] else []
        if (reason := _reason(path, binders)) and not _only_tests_for_kernel(path, caller):
            return reason
        if len(path) == 1:
            # functions may call one another recursively
            fresh = [b for b in binders if _is_function(b) and b.position not in followed]
            followed.update(b.position for b in fresh)
            pending.extend((call, b.node) for b in fresh for call in sorted(b.names.calls_later))
    return ""


def _only_tests_for_kernel(path: Path, caller: ast.stmt) -> bool:
    """Return whether each call only tests for a kernel, in code that handles its absence.

    For example, ranks can run `try: get_ipython() ... except NameError: ...`, although they lack the name.
    """
    if path != (_KERNEL,):
        return False
    expected = {
        node
        for tried in ast.walk(caller)
        if isinstance(tried, ast.Try) and any(map(_catches_name_error, tried.handlers))
        for part in tried.body
        for node in ast.walk(part)
    }
    calls = (node for node in ast.walk(caller) if isinstance(node, ast.Call))
    return all(
        node in expected
        for node in calls
        if isinstance(node.func, ast.Name) and node.func.id == _KERNEL
    )


def _catches_name_error(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {each.id for each in caught if isinstance(each, ast.Name)}
    return handler.type is None or not names.isdisjoint({"NameError", "Exception"})


def _is_function(statement: Statement) -> bool:
    node = statement.node
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Lambda)
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def _reason(path: Path, binders: Iterable[Statement]) -> str:
    if len(path) > 1 and path[-1] in _READING_CALLS:
        return f"reads a file (`{path[-1]}`)"
    binders = list(binders)
    # even without an import, because `from helpers import *` in a cell binds names that cannot be listed
    if not binders and path[0] in _STARTS_RANKS:
        return f"calls `{path[0]}`"
    if not binders:
        return _EXTERNAL.get(path[0], "") if len(path) == 1 else ""
    return next(filter(None, (_imported_reason(path, binder.node) for binder in binders)), "")


def _imported_reason(path: Path, node: ast.stmt) -> str:
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return ""
    module, name = imported_from(node, path[0])
    called = name or path[-1]
    top = module.split(".")[0]
    # the course's functions belong to the notebook, except functions that ranks also call
    if top == COURSE_PACKAGE and called not in _ALLOWED_IN_RANKS:
        return f"calls `{called}`"
    if top == "subprocess":
        return f"starts another program (`{called}`)"
    return f"reads a file (`{path[0]}.load`)" if path[-1] == "load" else ""


def imported_from(node: ast.Import | ast.ImportFrom, name: str) -> tuple[str, str]:
    """Return (module, name in it) of the object that an import binds to `name`, or ("", "")."""
    for alias in node.names:
        if isinstance(node, ast.Import) and name == (alias.asname or alias.name.split(".")[0]):
            return alias.name, ""
        if isinstance(node, ast.ImportFrom) and name == (alias.asname or alias.name):
            return "." * node.level + (node.module or ""), alias.name
    return "", ""
