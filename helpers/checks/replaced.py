"""Inside a rank: find functions of the course, torch and Python that an answer has replaced.

An answer runs in the process that judges parts of it and reports them, so it can replace any function called
by the judging code: by assignment, through a module's dictionary, by an alias, or with `unittest.mock`. All
of these ways are detected, because the contents of modules and classes are recorded before the answer is
built, and compared after the last case.

    rank server, before it forks: record the contents, and where they are in memory ──fork──> rank
    rank, before the answer:      memory changed, by the rank itself? ──yes──> record these contents again
    rank, after the last case:    memory changed since then? ──yes──> compare these contents

Some changes are not detected: a function restored before this comparison, a changed variable in a function's
frame, and changes to the comparison itself.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any

from helpers.checks.namespace_memory import Memory, make_comparison, memory_of
from helpers.ranks import preload
from helpers.ranks.rank_context import this_rank

# Modules outside the course that are used for judging values and sending reports.
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
# Names of torch that torch itself replaces: in set_default_dtype, and when something imports torch._dynamo.
_REPLACED_BY_TORCH = ("Storage", "manual_seed")
# Modules in which the code of functions is also compared.
_CODE_PREFIXES = ("helpers.", "torch.distributed.distributed_c10d")
_MAX_NAMES = 20


# What is compared: a module's or class's name, the object itself, its type, its namespace and the values in
# it; the names with which it could hide a built-in or an inherited function; and its functions whose code is
# compared, each with its code and defaults. This is a plain tuple, because no code can change how a tuple is
# unpacked.
_Contents = tuple[
    str,
    Any,
    Any,
    Mapping[str, Any],
    dict[str, Any],
    frozenset[str],
    list[tuple[str, FunctionType, CodeType, Any, Any]],
]


@dataclass(frozen=True)
class _Record:
    """The contents of a module or class, and where they are in memory if that is known."""

    holder: Any
    contents: _Contents
    memory: Memory | None


@dataclass
class _Recorded:
    """The watched modules and classes by name, and the modules among them."""

    records: dict[str, _Record] = field(default_factory=dict)
    modules: dict[str, Any] = field(default_factory=dict)


# A rank inherits the records of its server.
_recorded = _Recorded()


def record_functions() -> None:
    """Record the contents of all modules and classes that are new or have changed since the last call.

    A rank server calls this before it forks, because a rank copies the memory of everything that it records.
    """
    is_same, records, modules = make_comparison(), _recorded.records, _recorded.modules
    holders = [
        *((name, sys.modules.get(name)) for name in ("helpers", *_WATCHED_MODULES)),
        *(
            (f"{m}.{name}", vars(sys.modules[m]).get(name))
            for m, name in _WATCHED_CLASSES
            if m in sys.modules
        ),
    ]
    holders = [
        (name, holder) for name, holder in holders if holder is not None and name not in records
    ]
    holders += [
        (name, record.holder)
        for name, record in records.items()
        if record.memory is None or not is_same(record.memory)
    ]
    for name, holder in holders:  # The list grows during the loop.
        records[name] = _make_record(name, holder)
        if isinstance(holder, ModuleType):
            modules[name] = holder
        holders += [
            (inner_name, inner)
            for inner_name, inner in _holders_inside(name, holder)
            if inner_name not in records or records[inner_name].holder is not inner
        ]


preload.before_forking.append(record_functions)


def watch_functions(report: Callable[[str], None]) -> Callable[[], None]:
    """Record the contents of modules and classes; return a function that reports later replacements.

    Added names are reported only if they hide a built-in function or a function of a base class.
    report: called with the names, one per line. Like the comparison, it must not look up any names.
    """
    record_functions()
    max_names, is_callable, get_type, module_type = _MAX_NAMES, callable, type, ModuleType
    is_same = make_comparison()
    watched = [(record.memory, record.contents) for record in _recorded.records.values()]
    modules = _recorded.modules
    imported: _Contents = ("sys.modules", sys, module_type, sys.modules, modules, frozenset(), [])
    watched.append((memory_of(sys.modules), imported))
    # The answer could find the records here, and change what it is compared with.
    _recorded.records, _recorded.modules = {}, {}

    # Call only functions that were looked up before the answer was built, and methods of built-in types,
    # which no answer can replace.
    def compare() -> None:
        replaced: list[str] = []
        for memory, contents in watched:
            if memory is not None and is_same(memory):
                continue
            name, holder, kind, namespace, values, hideable, functions = contents
            for key, old_value in values.items():
                if namespace.get(key) is not old_value and (
                    is_callable(old_value) or get_type(old_value) is module_type
                ):
                    replaced.append(name + "." + key)
            if get_type(holder) is not kind:
                replaced.append(name)
            for key in hideable.intersection(namespace):
                replaced.append(name + "." + key)
            for key, function, code, defaults, kw_defaults in functions:
                if (
                    function.__code__ is not code
                    or function.__defaults__ is not defaults
                    or function.__kwdefaults__ is not kw_defaults
                ):
                    replaced.append(name + "." + key)
        if replaced:
            report("\n".join(replaced[:max_names]))

    return compare


def _make_record(name: str, holder: Any) -> _Record:
    namespace = vars(holder)
    values = dict(namespace)
    if name == "torch":
        for key in _REPLACED_BY_TORCH:
            values.pop(key, None)
    functions = [
        (key, value, value.__code__, value.__defaults__, value.__kwdefaults__)
        for key, value in values.items()
        if type(value) is FunctionType and name.startswith(_CODE_PREFIXES)
    ]
    contents = (
        name,
        holder,
        type(holder),
        namespace,
        values,
        _hideable_names(name, holder),
        functions,
    )
    return _Record(
        holder, contents, memory_of(namespace, holder, [function for _, function, *_ in functions])
    )


def _holders_inside(name: str, holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is watched because of one of the course's modules: its modules and classes.

    The driver of an exercise calls the modules of Python and torch that it has imported.
    """
    if not isinstance(holder, ModuleType) or f"{name}.".partition(".")[0] != "helpers":
        return
    prefix, is_driver = f"{name}.", name.startswith("helpers.exercises.")
    for key, value in list(vars(holder).items()):
        if isinstance(value, type):
            if value.__module__ == name:
                yield f"{name}.{key}", value
        elif isinstance(value, ModuleType):
            is_part = value.__name__.startswith(prefix)
            is_used = is_driver and not value.__name__.startswith("helpers.")
            if is_part or (is_used and value.__name__ not in _EXCLUDED_MODULES):
                yield value.__name__, value
    if name == "helpers.ranks.rank_context":
        yield f"{name}._context", this_rank()


def _hideable_names(name: str, holder: Any) -> frozenset[str]:
    """Return the names with which a module or class could hide a built-in or an inherited function."""
    if isinstance(holder, type):
        inherited = frozenset[str]().union(*map(vars, holder.__mro__[1:-1]))
        return inherited.difference(vars(holder))  # empty if it inherits only from `object`
    if name.startswith("helpers.") and isinstance(holder, ModuleType):
        return frozenset(vars(builtins)).difference(vars(holder))
    return frozenset()
