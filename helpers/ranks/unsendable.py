"""Explain why an object cannot be sent to the ranks: name the variable, its line, and a remedy.

`payload` calls this module only after pickling has failed, so nothing here needs to be fast.
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
from helpers.ranks.sending_state import hooks_of

_MAX_DEPTH = 12
_LOCK_TYPES = (
    type(threading.Lock()),
    type(threading.RLock()),
    threading.Condition,
    threading.Event,
)
_WAIT_TYPES = (threading.Semaphore, threading.Barrier)
_MAKE_INSIDE = "Make it inside the function: each rank then has its own."

_REMEDIES: tuple[tuple[tuple[type, ...], str, str], ...] = (
    ((io.IOBase,), "an open file", "Open it inside the function: each rank then has its own."),
    ((socket.socket,), "an open socket", "Open it inside the function."),
    (
        (*_LOCK_TYPES, *_WAIT_TYPES),
        "a lock or similar object for the threads of one process",
        "Ranks are processes: they wait for each other with dist.barrier(). For the threads within "
        "a rank, make it inside the function.",
    ),
    (
        (queue.Queue, queue.SimpleQueue),
        "a queue for the threads of one process",
        "Ranks are processes: use dist.send and dist.recv between them, and return the values that "
        "the notebook needs.",
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
    ((concurrent.futures.Executor,), "a pool of threads or processes", _MAKE_INSIDE),
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
        "To share numbers between the notebook and all ranks, use a tensor: after x.share_memory_(), each "
        "change of x is seen by all of them. Otherwise pass values with dist, and return results.",
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
    ("torch.", "Stream", "a GPU stream, which belongs to one process", _MAKE_INSIDE),
    ("tqdm", "", "a progress bar", _MAKE_INSIDE),
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
_DEFAULT_REMEDY = "Make it inside the function, or send the plain data that it is made from."


@dataclass(frozen=True)
class _UsedValue:
    """A value, its name for readers, and the line on which a function uses it."""

    name: str
    value: Any
    line: str = ""


def explain_unsendable(
    error: Exception,
    fn: Callable[..., Any],
    args: Sequence[Any],
    rank_args: Sequence[Sequence[Any]],
) -> CannotSend:
    """Return an error that names the unpicklable variable."""
    for used in _used_values(fn, args, rank_args):
        if pickling_problem(used.value):
            return CannotSend(describe_unsendable(used.name, used.value, used.line), used.name)
    name = getattr(fn, "__name__", "the function")
    return CannotSend(
        f"{name} cannot be sent to the ranks: {_first_line(error)}. {_DEFAULT_REMEDY}", name
    )


def pickling_problem(value: Any) -> str:
    """Return "" if a value can be sent; otherwise return pickle's message."""
    try:
        dumps(value)
    except Exception as error:
        return _first_line(error)
    return ""


def describe_unsendable(name: str, value: Any, line: str = "") -> str:
    """Explain why `name` cannot be sent, and which part of its value causes the failure."""
    path, part = _smallest_unsendable(name, value)
    kind, remedy = _kind_and_remedy(part)
    text = f"{name} cannot be sent to the ranks: "
    text += f"it is {kind}. " if path == name else f"{path} is {kind}. "
    return text + remedy + (f"\n  {line}" if line else "")


def is_process_bound(value: Any) -> bool:
    """Return whether values of this kind belong to a single process, without slow pickling."""
    return _known_kind(getattr(value, "__self__", value)) is not None


def _kind_and_remedy(part: Any) -> tuple[str, str]:
    """Return a description of a value's kind, and a replacement for it."""
    type_name = type(part).__qualname__
    if type(part).__module__ not in {"builtins", "__main__"}:
        type_name = f"{type(part).__module__}.{type_name}"
    if (known := _known_kind(part)) is not None:
        return f"{known[0]} ({type_name})", known[1]
    if "_torchdynamo_orig_callable" in getattr(part, "__dict__", {}):
        kind = "compiled in a way that a rank cannot repeat"
        return kind, "Call torch.compile inside the function."
    return f"a {type_name} ({pickling_problem(part)})", _DEFAULT_REMEDY


def _known_kind(part: Any) -> tuple[str, str] | None:
    for kinds, kind, remedy in _REMEDIES:
        if isinstance(part, kinds):
            return kind, remedy
    for module, name, kind, remedy in _REMEDIES_BY_NAME:
        for base in type(part).__mro__:
            if base.__module__.startswith(module) and name in base.__name__:
                return kind, remedy
    torch = sys.modules.get("torch")
    is_node = torch is not None and isinstance(part, torch.autograd.graph.Node)
    if is_node and type(part).__name__ != "AccumulateGrad":
        return "a node of a graph", "Compute the tensor in the function, and read its grad_fn."
    return None


def _smallest_unsendable(path: str, value: Any) -> tuple[str, Any]:
    """Return the path and value of the smallest part that cannot be sent."""
    for _ in range(_MAX_DEPTH):
        if _known_kind(value) is not None:
            return path, value
        for name, part in _parts_of(path, value):
            if pickling_problem(part):
                path, value = name, part
                break
        else:
            return path, value
    return path, value


def _parts_of(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield f"{path}[{key!r}]", part
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, part in enumerate(value):
            yield (f"{path}[{index}]" if isinstance(value, (list, tuple)) else f"in {path}"), part
    elif isinstance(value, types.FunctionType):
        for use in _values_used_by(value):
            yield use.name, use.value
    elif isinstance(value, types.MethodType):
        yield "the object that it belongs to", value.__self__
    elif isinstance(value, (enumerate, filter, map, zip)):
        for part in value.__reduce__()[1]:
            yield f"an iterator in {path}", part
    elif isinstance(value, type):
        for name, part in vars(value).items():
            if not name.startswith("__"):
                yield f"{path}.{name}", part
    elif not isinstance(value, types.ModuleType):
        yield from _attached_parts(path, value)
        with contextlib.suppress(TypeError):
            for name, part in vars(value).items():
                yield f"{path}.{name}", part


def _attached_parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield hooks and parts of torch's objects under readable names: `net.weight`."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if isinstance(value, torch.Tensor):
        for hook in hooks_of(value):
            yield f"a hook of {path}", hook
    if isinstance(value, torch.nn.Module):
        for kind in ("_parameters", "_buffers", "_modules"):
            for name, part in vars(value).get(kind, {}).items():
                yield f"{path}.{name}", part


def _used_values(
    fn: Callable[..., Any], args: Sequence[Any], rank_args: Sequence[Sequence[Any]]
) -> Iterator[_UsedValue]:
    for i, value in enumerate(args):
        yield _UsedValue(f"args[{i}]", value)
    for rank, part in enumerate(rank_args):
        for i, value in enumerate(part):
            yield _UsedValue(f"per_rank[{rank}][{i}]", value)
    yielded_ids: set[int] = set()
    queue: list[Any] = [fn]
    while queue:
        used = queue.pop()
        if id(used) in yielded_ids:
            continue
        yielded_ids.add(id(used))
        for use in _values_used_by(used):
            if isinstance(use.value, types.FunctionType) and _is_sent_by_value(use.value):
                queue.append(use.value)
            else:
                yield use
    if (bound := getattr(fn, "__self__", None)) is not None:
        yield _UsedValue(f"the object that {getattr(fn, '__name__', 'it')} belongs to", bound)
    if not isinstance(fn, (types.FunctionType, types.MethodType)):
        yield _UsedValue(getattr(fn, "__name__", type(fn).__name__), fn)


def _is_sent_by_value(function: types.FunctionType) -> bool:
    module = sys.modules.get(function.__module__ or "")
    return getattr(module, "__name__", "") == "__main__" or "<locals>" in function.__qualname__


def _values_used_by(function: Any) -> Iterator[_UsedValue]:
    """Yield the outside values used by a function: global and enclosing variables, defaults, attributes."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=False)
    enclosing = {name: _cell_contents(cell) for name, cell in cells}
    lines = _first_use_lines(code)
    for name, line in lines.items():
        if name in enclosing:
            yield _UsedValue(name, enclosing.pop(name), _describe_use(function, line))
        elif name in function.__globals__:
            yield _UsedValue(name, function.__globals__[name], _describe_use(function, line))
    for name, value in enclosing.items():
        yield _UsedValue(name, value)
    for value in function.__defaults__ or ():
        yield _UsedValue(f"a default of {function.__name__}", value)
    for name, value in (function.__kwdefaults__ or {}).items():
        yield _UsedValue(f"the default of {name}", value)
    for name, value in vars(function).items():
        yield _UsedValue(f"{function.__name__}.{name}", value)


def _first_use_lines(code: types.CodeType) -> dict[str, int]:
    """Return the outside variables that code reads, each with the first line that reads it."""
    first_lines: dict[str, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = (
            instruction.starts_line or line
            if type(instruction.starts_line) is int
            else _line_number(instruction, line)
        )
        if instruction.opname in {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}:
            first_lines.setdefault(str(instruction.argval), line)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            for name, inner in _first_use_lines(const).items():
                first_lines.setdefault(name, inner)
    return first_lines


def _line_number(instruction: Any, previous: int) -> int:
    number = getattr(
        instruction, "line_number", None
    )  # This is for Python 3.13, where `starts_line` is a bool.
    return previous if number is None else int(number)


def _describe_use(function: types.FunctionType, line: int) -> str:
    place = place_of(function.__code__.co_filename, line, function.__name__)
    text = place.source.strip()
    return f"used by {function.__name__} at {place}" + (f": {text}" if text else "")


def _cell_contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is still empty
        return None


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200] or type(error).__name__
