"""Report a rank's position when its launcher asks, and its threads for which no rank can be waiting.

The thread that listens to the launcher runs this in the rank, independent of the other threads.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import datetime
import dis
import io
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Annotated, Any

from msgspec import DecodeError, Meta, json

from helpers.ranks.joining import current_join_call
from helpers.ranks.quiet_threads import quiet_threads
from helpers.ranks.rank_context import launch_folder
from helpers.ranks.stores import KeyWait, key_wait_of
from helpers.trace.frames import (
    LEARNER,
    FrameLine,
    clip_text,
    code_kind,
    frame_line,
    frames_of_other_threads,
    learner_frame,
    thread_location,
)
from helpers.trace.joins import JoinCall

# Functions of torch that poll a store until other ranks have joined.
RENDEZVOUS = frozenset({"init_process_group", "new_group", "split_group", "init_rpc"})
# A rendezvous with a shorter timeout will end without help. Unless a program asks for a shorter one, the
# timeout is at least five minutes, torch's default for a store.
SHORT_TIMEOUT_S = 300.0

# Readable attributes of plain values and of `_HARMLESS_MODULES`. `set` is excluded, because it wakes waiting
# threads.
_HARMLESS_ATTRIBUTES = frozenset(
    """
    sleep time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time strftime
    now datetime timedelta total_seconds isoformat random uniform randint is_set wait append copy
    keys values items get format join strip split lower upper startswith endswith
    sqrt sin cos exp log floor ceil pi
    """.split()  # noqa: SIM905
)
_HARMLESS_BUILTINS = frozenset(
    """
    print len range int float str bool list dict tuple set min max sum abs round enumerate zip sorted
    repr True False None
    """.split()  # noqa: SIM905
)
_HARMLESS_MODULES = frozenset({"time", "math", "random", "datetime"})
_PLAIN_TYPES = frozenset(
    {
        int,
        float,
        complex,
        str,
        bytes,
        bool,
        type(None),
        range,
        datetime.datetime,
        datetime.timedelta,
    }
)
_CONTAINER_TYPES = frozenset({list, tuple, set, frozenset, dict, collections.deque})
_PLAIN_STREAM_TYPES = frozenset({io.TextIOWrapper, io.StringIO, type(None)})
_MAX_VALUES = 10_000
# Limits of a report: the length of a name, the number of other threads, and the number of ranks.
_MAX_NAME, _MAX_THREADS, _MAX_RANKS = 80, 8, 1024
_NAME_OPS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"})
_ATTRIBUTE_OPS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_REFUSED_OPS = frozenset(
    {
        "STORE_ATTR",
        "DELETE_ATTR",
        "LOAD_SUPER_ATTR",
        "IMPORT_FROM",
        "IMPORT_STAR",
        "LOAD_BUILD_CLASS",
    }
)
# Threads of libraries that wake up to check the library's data, as long as the process runs.
_MONITOR_THREADS = frozenset({"tqdm._monitor.TMonitor"})


_LimitedName = Annotated[str, Meta(max_length=_MAX_NAME)]
_LimitedRanks = Annotated[tuple[int, ...], Meta(max_length=_MAX_RANKS)]


@dataclass(frozen=True)
class ChildCall:
    """A child process's call on a group of the rank that forked it. Such a call never returns.

    who: "DataLoader worker" or "child process".
    """

    who: _LimitedName
    call: _LimitedName
    at: FrameLine


def report_child_call(rank_pid: int, call: str, at: FrameLine) -> None:
    """Store a call of this process for its parent rank. Call this in the child, before the reported call."""
    data = sys.modules.get("torch.utils.data")
    process_kind = "DataLoader worker" if data and data.get_worker_info() else "child process"
    with contextlib.suppress(OSError):  # If the disk is full, nothing is reported.
        _child_call_file(rank_pid).write_bytes(json.encode(ChildCall(process_kind, call, at)))


def _read_child_call() -> ChildCall | None:
    # The file is written by the learner's processes, and might not be complete yet.
    with contextlib.suppress(OSError, RuntimeError, DecodeError):
        return json.decode(_child_call_file(os.getpid()).read_bytes(), type=ChildCall)
    return None


def _child_call_file(rank_pid: int) -> Path:
    return launch_folder() / f"child-of-{rank_pid}"


@dataclass(frozen=True)
class Status:
    """A rank's report of its position. The launcher accepts only values of these types.

    Attributes:
        at: The learner's line.
        inside: The function of torch that the main thread is in, or "".
        meets: Its current rendezvous ("init_process_group", "store.get", ...), or "".
        needs: The ranks needed at the rendezvous; empty if all ranks of the world are needed.
        named: The members of the group that is being created.
        keys: The keys of a store that it waits for.
        asleep: Whether the main thread is in an event loop that only threads of this rank can wake.
        others: The names and lines of its other threads that are in the learner's code.
        idle: The threads for which no other rank can be waiting, by their ids inside the rank.
        quiet: The background threads if none can communicate with other ranks; None if one of them may.
        joins: Its current call of init_process_group.
        handling: The exception that an `except` or `finally` block of the main thread is handling, or "".
        alarm: Whether it will receive a signal when a timer expires.
        child: The current call of one of its child processes.
    """

    at: FrameLine | None = None
    inside: _LimitedName = ""
    meets: _LimitedName = ""
    needs: _LimitedRanks = ()
    named: _LimitedRanks = ()
    keys: KeyWait | None = None
    asleep: bool = False
    others: Annotated[
        tuple[tuple[_LimitedName, FrameLine], ...], Meta(max_length=_MAX_THREADS)
    ] = ()
    idle: frozenset[int] = frozenset()
    alarm: bool = False
    child: ChildCall | None = None
    quiet: frozenset[int] | None = None
    joins: JoinCall | None = None
    handling: _LimitedName = ""


def status(main: int, listener: int) -> Status:
    """Return the report of this rank. main, listener: the ids of these two threads."""
    at, inside, frame = thread_location(main)
    rendezvous, needs, members, ends_by_itself = _current_rendezvous(frame)
    key_wait = key_wait_of(frame)
    if key_wait is not None:
        inside = inside or key_wait.call
        rendezvous = rendezvous or key_wait.call
    return Status(
        at,
        inside[:_MAX_NAME],
        rendezvous,
        needs,
        members,
        key_wait,
        _is_in_own_event_loop(frame),
        _other_threads(main),
        frozenset([listener, *_harmless_threads()]),
        ends_by_itself or signal.getitimer(signal.ITIMER_REAL)[0] > 0,
        _read_child_call(),
        quiet_threads(main, threading.get_ident()) if inside else None,
        _join_call(frame),
        _handled_exception(main),
    )


def _handled_exception(thread: int) -> str:
    """Return the type and text of the exception handled by a thread, such as "ValueError: no more data"."""
    error: Any = sys._current_exceptions().get(thread)
    error = error[1] if isinstance(error, tuple) else error  # a tuple before Python 3.12
    if not isinstance(error, BaseException):
        return ""
    # Use only plain values, because the methods of a learner's class may do anything.
    arguments = BaseException.args.__get__(error)  # type: ignore[attr-defined]
    text = arguments[0] if arguments and type(arguments[0]) is str else ""
    return clip_text(f"{type(error).__name__}: {text}".removesuffix(": "), _MAX_NAME)


def _join_call(frame: FrameType | None) -> JoinCall | None:
    with contextlib.suppress(Exception):  # The arguments may be instances of the learner's classes.
        return current_join_call(frame)
    return None


def _is_in_own_event_loop(frame: FrameType | None) -> bool:
    """Return whether a thread is in an asyncio loop that only this process's threads can wake.

    This is the case if nothing but the loop's internal pipe is registered with its selector. Timers need no
    check here: the loop never waits beyond the next timer, so the kernel shows its deadline.
    """
    while frame is not None and code_kind(frame.f_code) is not LEARNER:
        if frame.f_code.co_name == "_run_once" and "self" in frame.f_locals:
            loop = frame.f_locals["self"]
            wakeup_fd = getattr(getattr(loop, "_ssock", None), "fileno", lambda: None)()
            registered: Any = getattr(getattr(loop, "_selector", None), "get_map", dict)()
            return wakeup_fd is not None and set(registered) == {wakeup_fd}
        frame = frame.f_back
    return False


def _other_threads(main: int) -> tuple[tuple[str, FrameLine], ...]:
    """Return the names and places of the other threads in the learner's code, up to a limit."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    threads = []
    for ident, frame in frames_of_other_threads().items():
        learner_line = learner_frame(frame) if ident != main and ident in names else None
        if learner_line is not None:
            threads.append((clip_text(names[ident], _MAX_NAME), frame_line(learner_line)))
    return tuple(threads[:_MAX_THREADS])


def _current_rendezvous(
    frame: FrameType | None,
) -> tuple[str, tuple[int, ...], tuple[int, ...], bool]:
    """Return a thread's rendezvous, the needed ranks, the group's members, and whether the wait ends soon.

    An empty tuple of ranks stands for all ranks of the world.
    """
    while frame is not None and code_kind(frame.f_code) is not LEARNER:
        name, arguments = frame.f_code.co_name, frame.f_locals
        if name in RENDEZVOUS:
            size, members = arguments.get("world_size"), _rank_numbers(arguments.get("ranks"))
            needs: tuple[int, ...] = ()
            if name == "init_process_group" and type(size) is int and 0 < size <= _MAX_RANKS:
                needs = tuple(range(size))
            elif arguments.get("use_local_synchronization"):
                needs = members
            return name, needs, members, _times_out_soon(arguments)
        frame = frame.f_back
    return "", (), (), False


def _rank_numbers(ranks: object) -> tuple[int, ...]:
    """Return the ranks in a list passed by the learner's code; empty if it is not a list."""
    numbers: Sequence[object] = ranks if type(ranks) is list else ()
    return tuple(rank for rank in numbers if type(rank) is int)[:_MAX_RANKS]


def _times_out_soon(arguments: Mapping[str, Any]) -> bool:
    limits = [arguments.get("timeout"), getattr(arguments.get("store"), "timeout", None)]
    return any(
        isinstance(timeout, datetime.timedelta) and timeout.total_seconds() < SHORT_TIMEOUT_S
        for timeout in limits
    )


def _harmless_threads() -> list[int]:
    """Return the native ids of Python threads for which no other rank can be waiting.

    For example, a thread that sleeps and reads a list in an endless loop can always continue, so it would
    hide every deadlock. A thread is included only if it handles nothing but plain values, if it uses only
    operations known to be harmless, and if no thread waits for its end. With any other thread, a deadlock
    ends only with the launch's budget.
    """
    frames = frames_of_other_threads()
    awaited = set(_joined_threads(frames.values()))
    native_ids = []
    for thread in threading.enumerate():
        kind = f"{type(thread).__module__}.{type(thread).__qualname__}"
        frame = frames.get(thread.ident or 0)
        if thread is threading.main_thread() or frame is None or thread.native_id is None:
            continue
        if id(thread) not in awaited and (kind in _MONITOR_THREADS or _is_harmless_thread(frame)):
            native_ids.append(thread.native_id)
    return native_ids


def _joined_threads(frames: Any) -> Iterator[int]:
    """Yield the ids of the thread objects that some thread is joining."""
    for innermost in frames:
        frame = innermost
        while frame is not None:
            if frame.f_code.co_name == "join" and frame.f_globals.get("__name__") == "threading":
                yield id(frame.f_locals.get("self"))
            frame = frame.f_back


def _is_harmless_thread(frame: FrameType | None) -> bool:
    learner_frames = 0
    checked_ids: set[int] = set()
    while frame is not None:
        if code_kind(frame.f_code) is LEARNER:
            learner_frames += 1
            if not _are_harmless_values(list(frame.f_locals.values()), frame.f_code, checked_ids):
                return False
            if not _is_harmless_code(
                frame.f_code, {**frame.f_globals, **frame.f_locals}, checked_ids
            ):
                return False
        elif frame.f_globals.get("__name__") != "threading":
            return False
        frame = frame.f_back
    # Until a Timer fires, it has no function of the learner's on its stack. A raising thread ends in the
    # hook, and its prints go to stdout, so the learner's code must not have replaced the hook or stdout.
    has_plain_output = (
        threading.excepthook is threading.__excepthook__ and type(sys.stdout) in _PLAIN_STREAM_TYPES
    )
    return learner_frames > 0 and has_plain_output


def _is_harmless_code(code: CodeType, scope: Mapping[str, Any], checked_ids: set[int]) -> bool:
    """Return whether code whose parameters are plain values cannot wake other threads or ranks.

    scope: the values of the code's other names. checked_ids: the ids of functions that have already been
    checked.
    """
    if any(isinstance(const, CodeType) for const in code.co_consts):
        return False  # Functions defined inside it are not checked.
    for instruction in dis.get_instructions(code):
        name = str(instruction.argval)
        if instruction.opname in _REFUSED_OPS or (
            instruction.opname in _ATTRIBUTE_OPS and name not in _HARMLESS_ATTRIBUTES
        ):
            return False
        if instruction.opname == "IMPORT_NAME" and not _are_harmless_values(
            [sys.modules.get(name, object())], code, checked_ids
        ):
            return False
        reads_or_sets = instruction.opname in _NAME_OPS or instruction.opname in {
            "STORE_GLOBAL",
            "STORE_DEREF",
        }
        if reads_or_sets and not _is_harmless_name(name, scope, code, checked_ids):
            return False
    return True


def _is_harmless_name(
    name: str, scope: Mapping[str, Any], code: CodeType, checked_ids: set[int]
) -> bool:
    if name not in scope:  # The variable is not defined yet and will hold a plain value.
        return name in _HARMLESS_BUILTINS or not hasattr(builtins, name)
    return _are_harmless_values([scope[name]], code, checked_ids)


def _are_harmless_values(values: list[Any], code: CodeType, checked_ids: set[int]) -> bool:
    """Return whether `code` cannot wake other threads or ranks by using these values."""
    for count, value in enumerate(values):  # The list grows during the loop.
        kind = type(value)
        if kind in _PLAIN_TYPES or kind is threading.Event:
            continue
        if count > _MAX_VALUES or not _is_harmless_value(value, code, checked_ids):
            return False
        if kind in _CONTAINER_TYPES:
            if len(values) + len(value) > _MAX_VALUES:
                return False
            values += value if kind is not dict else [*list(value), *list(value.values())]
    return True


def _is_harmless_value(value: Any, code: CodeType, checked_ids: set[int]) -> bool:
    if type(value) in _CONTAINER_TYPES:
        return True
    if isinstance(value, types.ModuleType):
        attributes = (
            getattr(value, name, None) for name in code.co_names if name in _HARMLESS_ATTRIBUTES
        )
        return value.__name__ in _HARMLESS_MODULES and all(
            _is_from_harmless_module(attribute) for attribute in attributes
        )
    if isinstance(value, types.FunctionType) and code_kind(value.__code__) is LEARNER:
        if id(value) in checked_ids:
            return True
        checked_ids.add(id(value))
        defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=False)
        names = {**value.__globals__, **{free: _cell_contents(cell) for free, cell in cells}}
        return _are_harmless_values(defaults, value.__code__, checked_ids) and _is_harmless_code(
            value.__code__, names, checked_ids
        )
    return callable(value) and _is_from_harmless_module(value)


def _is_from_harmless_module(value: Any) -> bool:
    """Return whether a value belongs to one of `_HARMLESS_MODULES`.

    This checks the value itself, because a learner may have replaced an attribute of the module.
    """
    module = getattr(value, "__module__", "") or type(getattr(value, "__self__", None)).__module__
    return type(value) in _PLAIN_TYPES or module in _HARMLESS_MODULES


def _cell_contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is still empty
        return None
