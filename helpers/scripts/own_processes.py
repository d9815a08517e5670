"""Replace processes that a script starts as its ranks with the ranks that are already running.

    for rank in range(4):                           on rank 2:
        p = mp.Process(target=work, args=(rank,))
        p.start()                                   recorded, but not started
    p.join()                                        runs the third process's work here, then ends the rank

After the join, only rank 0 continues, because under plain Python one process started the others. Processes
whose work does not initialize a process group, such as data-loading workers, are started as usual.
"""

from __future__ import annotations

import functools
import multiprocessing.process
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType
from typing import Any

from helpers.scripts.own_spawn import StartsProcesses, refuse_shared_objects
from helpers.trace.frames import LEARNER, code_kind, learner_frame

_INITIALIZERS = frozenset({"init_process_group", "init_device_mesh"})
_MAX_FUNCTIONS = 200
"""Maximum number of a script's functions that are searched for the initialization of a group."""


@dataclass
class OwnProcesses:
    """The processes that this rank's script would have started as ranks."""

    rank: int
    world_size: int
    script: str
    pid: int = field(default_factory=os.getpid)
    _line: str = ""
    _processes: list[Any] = field(default_factory=list)
    _has_run: bool = False

    def install(self) -> None:
        """Replace the methods of `multiprocessing.Process` in this rank."""
        process = multiprocessing.process.BaseProcess
        start, join, is_alive = process.start, process.join, process.is_alive
        exit_code: Any = vars(process)["exitcode"]

        def start_or_note(this: Any) -> None:
            if not self._note(this):
                start(this)

        def run_or_join(this: Any, timeout: float | None = None) -> None:
            return self.finish() if this in self._processes else join(this, timeout)

        def run_or_look(this: Any) -> bool:
            if this not in self._processes:
                return is_alive(this)
            self.finish()
            return False

        def run_or_read(this: Any) -> Any:
            if this not in self._processes:
                return exit_code.fget(this)
            self.finish()
            return 0

        methods = {"start": start_or_note, "join": run_or_join, "is_alive": run_or_look}
        for name, method in methods.items():
            setattr(process, name, method)
        setattr(process, "exitcode", property(run_or_read))  # noqa: B010 (mypy knows its type)

    def finish(self) -> None:
        """Run the process that this rank replaces, if the script has started any."""
        if self._has_run or not self._processes or os.getpid() != self.pid:
            return
        self._has_run = True
        count = len(self._processes)
        if count != self.world_size:
            raise StartsProcesses(
                f"{self.script} starts {count} processes as ranks{self._line}. Run it with --ranks {count}: "
                "the ranks then take the place of these processes."
            )
        self._processes[self.rank].run()
        if self.rank != 0:
            raise SystemExit(0)

    def _note(self, process: Any) -> bool:
        """Record a process that would be a rank. Return False for any other process."""
        if os.getpid() != self.pid or self._has_run or not _joins_group(process):
            return False
        frame = learner_frame(sys._getframe(2))
        self._line = f" (line {frame.f_lineno})" if frame is not None else ""
        arguments = (*process._args, *process._kwargs.values())
        refuse_shared_objects(self.script, arguments, f"the processes that it starts{self._line}")
        if not self._processes:
            self._guard_parent()
        self._processes.append(process)
        return True

    def _guard_parent(self) -> None:
        """Refuse, with an explanation, a script that starts some ranks and is also a rank itself."""
        from torch import distributed as dist

        original = dist.init_process_group

        @functools.wraps(original)
        def init_process_group(*args: Any, **kwargs: Any) -> None:
            if self._processes and not self._has_run and os.getpid() == self.pid:
                raise StartsProcesses(
                    f"{self.script} starts processes as ranks{self._line}, and is a rank itself. "
                    f"Make it a single rank that reads RANK from os.environ, or run it with plain "
                    f"python."
                )
            original(*args, **kwargs)

        for owner in (dist, dist.distributed_c10d):
            vars(owner)["init_process_group"] = init_process_group


def _joins_group(process: Any) -> bool:
    """Return whether a process's work initializes a process group, as far as its code can be read."""
    todo: list[Any] = [process._target, *process._args] if process._target else [process.run]
    read: set[int] = set()
    while todo and len(read) < _MAX_FUNCTIONS:
        function = _plain_function(todo.pop())
        if function is None or id(function) in read or code_kind(function.__code__) is not LEARNER:
            continue
        read.add(id(function))
        for name in _names(function.__code__):
            if name in _INITIALIZERS:
                return True
            value = function.__globals__.get(name)
            todo += vars(value).values() if isinstance(value, type) else [value]
    return False


def _plain_function(value: Any) -> FunctionType | None:
    while isinstance(value, functools.partial | MethodType):
        value = value.func if isinstance(value, functools.partial) else value.__func__
    return value if isinstance(value, FunctionType) else None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _names(value)
