"""Inside a rank: find functions of the course, torch and Python that an answer has replaced.

An answer runs in the process that judges parts of it and reports them, so it can replace any function called
by the judging code: by assignment, through a module's dictionary, by an alias, or with `unittest.mock`. All
of these ways are detected, because the contents of modules and classes are recorded before the answer is
built, and compared after the last case.

Some changes are not detected: a function restored before this comparison, a changed variable in a function's
frame, and changes to the comparison itself.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from helpers.ranks.rank_context import this_rank

# Modules outside the course that are used for judging values and sending reports. The list is short, because
# accessing an object copies a memory page that the rank still shares with its server.
_WATCHED_MODULES = (
    "builtins",
    "inspect",
    "json",
    "math",
    "msgspec.json",
    "os",
    "random",
    "socket",
    "struct",
    "threading",
    "time",
    "torch",
    "torch._C._distributed_c10d",
    "torch._tensor",
    "torch.autograd",
    "torch.distributed",
    "torch.distributed.distributed_c10d",
    "torch.nn.functional",
    "torch.nn.modules.module",
)
_WATCHED_CLASSES = (
    ("torch", "Tensor"),
    ("torch.autograd.function", "Function"),
    ("torch.nn.modules.module", "Module"),
    ("torch._C", "Future"),
    ("torch._C._distributed_c10d", "ProcessGroup"),
    ("torch._C._distributed_c10d", "Store"),
    ("torch._C._distributed_c10d", "Work"),
)
# torch itself replaces functions of these modules, when a group is made and when RPC begins.
_EXCLUDED_MODULES = ("sys", "torch.distributed.rpc.api")
# Modules in which the code of functions is also compared.
_CODE_PREFIXES = ("helpers.", "torch.distributed.distributed_c10d")
_MAX_NAMES = 20


def watch_functions(report: Callable[[str], None]) -> Callable[[], None]:
    """Record the contents of modules and classes; return a function that reports later replacements.

    Added names are reported only if they hide a built-in function or a function of a base class.
    report: called with the names, one per line. Like the comparison, it must not look up any names.
    """
    max_names, is_callable, get_type, module_type = _MAX_NAMES, callable, type, ModuleType
    holders = list(_watched_holders())
    contents = [(name, vars(holder), vars(holder).copy()) for name, holder in holders]
    for name, _, values in contents:
        if name == "torch":
            values.pop("Storage", None)  # torch.set_default_dtype replaces it, and no check uses it
    modules = {name: holder for name, holder in holders if isinstance(holder, ModuleType)}
    contents.append(("sys.modules", sys.modules, modules))
    classes_before = [(name, holder, type(holder)) for name, holder in holders]
    hideable = [(name, vars(holder), names) for name, holder, names in _hideable_names(holders)]
    codes = [
        (name, key, value, value.__code__, value.__defaults__, value.__kwdefaults__)
        for name, _, values in contents
        if name.startswith(_CODE_PREFIXES)
        for key, value in values.items()
        if type(value) is FunctionType
    ]

    # Call only functions that were looked up before the answer was built, and methods of built-in types,
    # which no answer can replace.
    def compare() -> None:
        replaced: list[str] = []
        for name, namespace, values in contents:
            for key, old_value in values.items():
                if namespace.get(key) is not old_value and (
                    is_callable(old_value) or get_type(old_value) is module_type
                ):
                    replaced.append(name + "." + key)
        for name, holder, kind in classes_before:
            if get_type(holder) is not kind:
                replaced.append(name)
        for name, namespace, keys in hideable:
            for key in keys.intersection(namespace):
                replaced.append(name + "." + key)
        for name, key, function, code, defaults, kw_defaults in codes:
            if (
                function.__code__ is not code
                or function.__defaults__ is not defaults
                or function.__kwdefaults__ is not kw_defaults
            ):
                replaced.append(name + "." + key)
        if replaced:
            report("\n".join(replaced[:max_names]))

    return compare


def _watched_holders() -> Iterator[tuple[str, Any]]:
    """Yield the course's modules and classes, and those of Python and torch that the course calls."""
    watched = {name: sys.modules[name] for name in _WATCHED_MODULES if name in sys.modules}
    for name, module in _course_modules():
        yield name, module
        is_driver = name.startswith("helpers.exercises.")
        for key, value in vars(module).items():
            if isinstance(value, type):
                if value.__module__ == name:
                    yield f"{name}.{key}", value
            elif is_driver and isinstance(value, ModuleType):
                watched[value.__name__] = value  # the exercise's driver calls it
    for name, module in watched.items():
        if not name.startswith("helpers.") and name not in _EXCLUDED_MODULES:
            yield name, module
    for name, key in _WATCHED_CLASSES:
        if name in sys.modules:
            yield f"{name}.{key}", getattr(sys.modules[name], key)
    yield "helpers.ranks.rank_context._context", this_rank()


def _course_modules(
    package: ModuleType = sys.modules["helpers"],
) -> Iterator[tuple[str, ModuleType]]:
    """Yield the imported modules of the course, found through their packages."""
    # do not use sys.modules, because going through all its names would copy a thousand pages of memory
    prefix = package.__name__ + "."
    for value in list(vars(package).values()):
        if isinstance(value, ModuleType) and value.__name__.startswith(prefix):
            yield value.__name__, value
            if "__path__" in vars(value):
                yield from _course_modules(value)


def _hideable_names(holders: list[tuple[str, Any]]) -> Iterator[tuple[str, Any, frozenset[str]]]:
    """Yield the names with which a module or class could hide a built-in or an inherited function."""
    built_in = frozenset(vars(builtins))
    for name, holder in holders:
        if isinstance(holder, type):
            inherited = frozenset[str]().union(*map(vars, holder.__mro__[1:-1]))
            if inherited:  # inherited from a class other than `object`
                yield name, holder, inherited.difference(vars(holder))
        elif name.startswith("helpers."):
            yield name, holder, built_in.difference(vars(holder))
