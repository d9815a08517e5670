"""Flag names in an answer's source that a person should check.

The names are only examples, because most bypasses need none of them. Functions replaced by an answer, in
whatever way, are found in its ranks (`checks.replaced`).

`grader` calls `find_flags`. tests/grading/hostile/test_bypasses.py lists the ways to bypass a rule and tries
them. For each of them, the call is recorded and breaks the rule, its name is flagged here, or it remains
unnoticed. Rules on traffic exist for teaching, because they read recordings made in processes that also run
the answer.

Grading does not trust a rank's report of where a case begins and ends (`checks.check_answer`). It trusts all
other reports from Python code in a rank. An answer that reaches this code, through frames or the garbage
collector, can forge the order, times and arguments of its calls; the report of changed inputs; the conditions
that make a world hard (sleeps, late ranks, poison values until `wait()`); and the counts of the course's code
next to the answer, such as retained memory, steps taken and hooks called. Returned values are compared with
expected values, which no rank has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from helpers.checks.exercise import Exercise

# Names for communicating without a record.
UNRECORDED_NAMES = frozenset(
    {
        "FileStore",
        "HashStore",
        "TCPStore",
        "_get_backend",
        "_get_default_store",
        "_new_window",
        "_reconfigure",
        "ctypes",
        "get_backend",
        "get_backend_impl",
        "mmap",
        "mpi4py",
        "multiprocessing",
        "new_window",
        "open",
        "reconfigure",
        "rpc",
        "shared_memory",
        "share_memory_",
        "socket",
        "subprocess",
        "write_text",
        "write_bytes",
    }
)

UNRECORDED_FLAG = "uses `{name}`, by which ranks can communicate unrecorded: check the reason"


# Names for accessing the code around an answer, and for changing a rank's reports.

# `sys.modules` is another way, but the name `modules` is also a method of every `nn.Module`.
INTROSPECTION_NAMES = frozenset(
    {
        "__subclasses__",
        "_current_frames",
        "_getframe",
        "f_back",
        "f_locals",
        "get_objects",
        "get_referrers",
        "getsource",
        "importlib",
        "reload",
        "setprofile",
        "settrace",
        "tb_frame",
    }
)

INTROSPECTION_FLAG = "uses `{name}`, which can change its rank's reports: check the reason"

REPLACEMENT_FLAG = "replaces `{name}`, which might influence its rank's reports: check the reason"

ALLOWED_REPLACEMENTS = frozenset({"dist.distributed_c10d._world.group_count"})
"""Attributes that a notebook's code replaces. No report depends on the number of groups."""

ALLOWED_IMPORTS = frozenset(
    f"helpers.exercises.nb23_capstone.in_ranks.{name}" for name in ("bugs", "trainer")
)
"""Inner modules of the course that notebooks import in their cells."""

IMPORT_FLAG = "imports `{name}`, which is not a module meant for answers: check the reason"


def find_flags(exercise: Exercise, source: str) -> tuple[str, ...]:
    """Return a sentence for each name in an answer's source that a person should check."""
    if not (tree := _parse(source)):
        return ()
    names = set(_used_names(tree))
    inner = (
        INTROSPECTION_NAMES | {"modules"} if re.search(r"\bsys\b", source) else INTROSPECTION_NAMES
    )
    found = [
        IMPORT_FLAG.format(name=name)
        for name in sorted(_internal_module_imports(tree) - ALLOWED_IMPORTS)
    ]
    found += [INTROSPECTION_FLAG.format(name=name) for name in sorted(names & inner)]
    found += [REPLACEMENT_FLAG.format(name=name) for name in sorted(_replaced_attributes(tree))]
    if any(rule.forbids for rule in exercise.rules):
        found += [UNRECORDED_FLAG.format(name=name) for name in sorted(names & UNRECORDED_NAMES)]
    return tuple(found)


def _parse(source: str) -> ast.AST | None:
    # An answer that Python cannot parse has not run. Deep nesting exceeds ast's recursion limit or memory.
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _internal_module_imports(tree: ast.AST) -> set[str]:
    """Return the imported or mentioned inner modules of the course. Answers need only `helpers`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith("helpers.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("helpers."):
            found.add(str(node.module))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value[:80]} if node.value.startswith("helpers.") else set()
    return found


def _replaced_attributes(tree: ast.AST) -> set[str]:
    """Return attributes of imported objects that are assigned or deleted, except torch's settings."""
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            name = ast.unparse(node)
            is_setting = ".backends." in name or name in ALLOWED_REPLACEMENTS
            if name.partition(".")[0] in imported and not is_setting:
                found.add(name[:80])
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"setattr", "delattr"}:
            owner = ast.unparse(node.args[0]) if node.args else ""
            if owner.partition(".")[0] in imported:
                found.add(owner[:80])
    return found


def _used_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "").split(".")
        # getattr(dist, "_get_backend") contains the name as a string
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.split(".")
