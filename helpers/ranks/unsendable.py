"""Explain why something cannot be sent to the ranks: which variable, on which line, and what to do.

`payload` calls this only after pickling has failed, so nothing here needs to be fast.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dis
import io
import multiprocessing.process
import queue
import socket
import subprocess
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helpers.ranks.cells import place_of
from helpers.ranks.failures import CannotSend
from helpers.ranks.sending import dumps

_DEPTH = 12
_LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event)
_WAITS = (threading.Semaphore, threading.Barrier)
_INSIDE = "Make it inside the function: each rank then has its own."

_REMEDIES: tuple[tuple[tuple[type, ...], str, str], ...] = (
    ((io.IOBase,), "an open file", "Open it inside the function: each rank then has its own."),
    ((socket.socket,), "an open socket", "Open it inside the function."),
    (
        (*_LOCKS, *_WAITS),
        "a lock or similar object for the threads of one process",
        "Ranks share no memory: they wait for each other with dist.barrier(). For the threads within "
        "a rank, make it inside the function.",
    ),
    (
        (queue.Queue, queue.SimpleQueue),
        "a queue for the threads of one process",
        "Ranks share no memory: use dist.send and dist.recv between them, and return what the notebook "
        "is to see.",
    ),
    (
        (types.GeneratorType, types.AsyncGeneratorType),
        "a generator",
        "Send a list of its items, or create it inside your function.",
    ),
    (
        (types.CoroutineType,),
        "a coroutine",
        "Send the async function, and pass its call to asyncio.run() on the rank.",
    ),
    (
        (threading.Thread, multiprocessing.process.BaseProcess, subprocess.Popen),
        "a thread or process of the notebook",
        "Start it inside the function.",
    ),
    ((concurrent.futures.Executor,), "a pool of threads or processes", _INSIDE),
    ((weakref.ReferenceType,), "a weak reference", "Send the object itself."),
    (
        (types.FrameType, types.TracebackType),
        "a frame of a running program",
        "Send the text: traceback.format_exc().",
    ),
)
_REMEDIES_BY_NAME: tuple[tuple[str, str, str, str], ...] = (
    (
        "multiprocessing.queues",
        "",
        "a queue for children of the notebook's process",
        "Return values from the function instead: they are in launch(...).values[rank].",
    ),
    (
        "multiprocessing.",
        "",
        "shared between the notebook's process and its own children only",
        "Ranks share no memory: pass values with dist, and return what the notebook needs.",
    ),
    (
        "torch.",
        "ProcessGroup",
        "a process group, which works only in the process that created it",
        "Make it inside the function, with dist.new_group().",
    ),
    (
        "torch.",
        "Work",
        "a call that a different process has started",
        "Call its wait() in the process that started it.",
    ),
    (
        "torch.",
        "Store",
        "a connection to a store, which belongs to one process",
        "Open it inside the function.",
    ),
    (
        "torch.utils.data",
        "LoaderIter",
        "an iterator over a DataLoader",
        "Send the DataLoader, and write iter(loader) inside the function.",
    ),
    ("torch.", "Stream", "a GPU stream, which belongs to one process", _INSIDE),
    ("tqdm", "", "a progress bar", _INSIDE),
    ("sqlite3", "", "an open database", "Open it inside the function."),
    (
        "helpers.hosts",
        "Hosts",
        "the hosts on which ranks run",
        "Leave it out: only the notebook can launch on them.",
    ),
    ("ipykernel", "", "the notebook's kernel itself", "Leave it out: ranks have no notebook."),
    ("IPython", "", "the notebook's kernel itself", "Leave it out: ranks have no notebook."),
)
_ELSE = "Make it inside the function, or send the plain data that it is made from."


@dataclass(frozen=True)
class _Use:
    """A value, its name for readers, and the line on which a function uses it."""

    name: str
    value: Any
    line: str = ""


def explain(
    error: Exception, fn: Callable[..., Any], args: Sequence[Any], parts: Sequence[Sequence[Any]]
) -> CannotSend:
    """Return an error that names the variable that cannot be pickled."""
    for use in _uses(fn, args, parts):
        if problem(use.value):
            return CannotSend(message(use.name, use.value, use.line), use.name)
    name = getattr(fn, "__name__", "the function")
    return CannotSend(f"{name} cannot be sent to the ranks: {_first_line(error)}. {_ELSE}", name)


def problem(value: Any) -> str:
    """Return "" if a value can be sent, otherwise pickle's message."""
    try:
        dumps(value)
    except Exception as error:
        return _first_line(error)
    return ""


def message(name: str, value: Any, line: str = "") -> str:
    """Explain why `name` cannot be sent, with the part of its value that is the cause."""
    path, part = _culprit(name, value)
    what, remedy = _kind(part)
    told = f"{name} cannot be sent to the ranks: "
    told += f"it is {what}. " if path == name else f"{path} is {what}. "
    return told + remedy + (f"\n  {line}" if line else "")


def is_known(value: Any) -> bool:
    """Return whether a value is of a kind that belongs to one process, without pickling, which is slow."""
    return _known(getattr(value, "__self__", value)) is not None


def _kind(part: Any) -> tuple[str, str]:
    """Return what a value is, and what to write instead."""
    shown = type(part).__qualname__
    if type(part).__module__ not in {"builtins", "__main__"}:
        shown = f"{type(part).__module__}.{shown}"
    if (known := _known(part)) is not None:
        return f"{known[0]} ({shown})", known[1]
    if "_torchdynamo_orig_callable" in getattr(part, "__dict__", {}):
        how = "compiled in a way that a rank cannot repeat"
        return how, "Call torch.compile inside the function."
    return f"a {shown} ({problem(part)})", _ELSE


def _known(part: Any) -> tuple[str, str] | None:
    for kinds, what, remedy in _REMEDIES:
        if isinstance(part, kinds):
            return what, remedy
    for module, name, what, remedy in _REMEDIES_BY_NAME:
        for base in type(part).__mro__:
            if base.__module__.startswith(module) and name in base.__name__:
                return what, remedy
    return None


def _culprit(path: str, value: Any) -> tuple[str, Any]:
    """Return the path and value of the smallest part that cannot be sent."""
    for _ in range(_DEPTH):
        if _known(value) is not None:
            return path, value
        for name, part in _parts(path, value):
            if problem(part):
                path, value = name, part
                break
        else:
            return path, value
    return path, value


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield f"{path}[{key!r}]", part
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, part in enumerate(value):
            yield (f"{path}[{index}]" if isinstance(value, (list, tuple)) else f"in {path}"), part
    elif isinstance(value, types.FunctionType):
        for use in _uses_of(value):
            yield use.name, use.value
    elif isinstance(value, types.MethodType):
        yield "the object that it belongs to", value.__self__
    elif isinstance(value, type):
        for name, part in vars(value).items():
            if not name.startswith("__"):
                yield f"{path}.{name}", part
    elif not isinstance(value, types.ModuleType):
        with contextlib.suppress(TypeError):
            for name, part in vars(value).items():
                yield f"{path}.{name}", part


def _uses(
    fn: Callable[..., Any], args: Sequence[Any], parts: Sequence[Sequence[Any]]
) -> Iterator[_Use]:
    for i, value in enumerate(args):
        yield _Use(f"args[{i}]", value)
    for rank, part in enumerate(parts):
        for i, value in enumerate(part):
            yield _Use(f"per_rank[{rank}][{i}]", value)
    seen: set[int] = set()
    queue: list[Any] = [fn]
    while queue:
        found = queue.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        for use in _uses_of(found):
            if isinstance(use.value, types.FunctionType) and _is_by_value(use.value):
                queue.append(use.value)
            else:
                yield use
    if (bound := getattr(fn, "__self__", None)) is not None:
        yield _Use(f"the object that {getattr(fn, '__name__', 'it')} belongs to", bound)
    if not isinstance(fn, (types.FunctionType, types.MethodType)):
        yield _Use(getattr(fn, "__name__", type(fn).__name__), fn)


def _is_by_value(function: types.FunctionType) -> bool:
    module = sys.modules.get(function.__module__ or "")
    return getattr(module, "__name__", "") == "__main__" or "<locals>" in function.__qualname__


def _uses_of(function: Any) -> Iterator[_Use]:
    """Yield what a function uses from outside: global and enclosing variables, defaults, attributes."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=False)
    around = {name: _content(cell) for name, cell in cells}
    lines = _lines(code)
    for name, line in lines.items():
        if name in around:
            yield _Use(name, around.pop(name), _told(function, line))
        elif name in function.__globals__:
            yield _Use(name, function.__globals__[name], _told(function, line))
    for name, value in around.items():
        yield _Use(name, value)
    for value in function.__defaults__ or ():
        yield _Use(f"a default of {function.__name__}", value)
    for name, value in (function.__kwdefaults__ or {}).items():
        yield _Use(f"the default of {name}", value)
    for name, value in vars(function).items():
        yield _Use(f"{function.__name__}.{name}", value)


def _lines(code: types.CodeType) -> dict[str, int]:
    """Return the outside variables that code reads, each with the first line that reads it."""
    found: dict[str, int] = {}
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        line = step.starts_line or line if type(step.starts_line) is int else _line_of(step, line)
        if step.opname in {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}:
            found.setdefault(str(step.argval), line)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            for name, inner in _lines(const).items():
                found.setdefault(name, inner)
    return found


def _line_of(step: Any, before: int) -> int:
    number = getattr(step, "line_number", None)  # In Python 3.13, where `starts_line` is a bool.
    return before if number is None else int(number)


def _told(function: types.FunctionType, line: int) -> str:
    place = place_of(function.__code__.co_filename, line, function.__name__)
    text = place.source.strip()
    return f"used by {function.__name__} at {place}" + (f": {text}" if text else "")


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200] or type(error).__name__
