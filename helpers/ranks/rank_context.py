"""Functions for code in a rank that needs the engine around it, such as `span` and `inside_rank`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.ranks.cells import in_kernel
from helpers.ranks.failures import LaunchError

if TYPE_CHECKING:
    from helpers.trace.recorder import Recorder


@dataclass
class _RankContext:
    """Objects that this process received when it became a rank; empty in every other process."""

    folder: str = ""
    ask: Callable[[list[Any]], Any] | None = None
    report: Callable[[str], None] | None = None
    recorder: Recorder | None = None


_context = _RankContext()


def become_rank(
    folder: str,
    ask: Callable[[list[Any]], Any],
    report: Callable[[str], None],
    recorder: Recorder | None,
) -> None:
    """Make this process a rank: store its launch's folder and the functions used to reach the launcher.

    Args:
        folder: The folder of the launch.
        ask: A function that sends a question to the launcher and returns the reply.
        report: A function that sends the names of replaced functions.
        recorder: The recorder of the rank's calls, or None.
    """
    _context.folder, _context.ask, _context.report, _context.recorder = (
        folder,
        ask,
        report,
        recorder,
    )


def ask_launcher(question: list[Any]) -> Any:
    """Ask the launcher for data that must not be in this process. Return its reply, as plain JSON.

    Raises:
        TimeoutError: There was no reply in time.
    """
    if _context.ask is None:
        raise RuntimeError("only a rank has a launcher that it can ask")
    return _context.ask(question)


def replacement_reporter() -> Callable[[str], None]:
    """Return a function that reports replaced functions, one name per line, without looking up names."""
    if _context.report is None:
        raise RuntimeError("only a rank has a launcher to which it can report")
    return _context.report


def this_rank() -> object:
    """Return the object that holds this rank's state.

    Callers use this object to check later that its parts are still the same.
    """
    return _context


def launch_folder() -> Path:
    """Return the folder shared by all ranks of this launch. It is removed when the launch ends."""
    if not _context.folder:
        raise RuntimeError("only a rank has a folder of its launch")
    return Path(_context.folder)


def recorded_call_count() -> int:
    """Return the number of calls and spans that this rank has recorded so far."""
    return _context.recorder.count if _context.recorder is not None else 0


def current_recorder() -> Recorder | None:
    """Return the recorder of this rank's calls, if it has one."""
    return _context.recorder


def inside_rank() -> bool:
    """Return whether this process is a rank, or was started by one."""
    return os.environ.get("REAL_RANKS_INSIDE") == "1"


def check_launch_allowed() -> None:
    """Raise LaunchError inside a rank, a multiprocessing child or a torchrun worker."""
    import multiprocessing

    if inside_rank():
        raise LaunchError("launch() was called inside a rank. Call it from the notebook.")
    # While re-importing the main script, a spawned child does not know its parent yet.
    importing = getattr(multiprocessing.current_process(), "_inheriting", False)
    if (
        multiprocessing.parent_process() is not None
        and not importing
        and sys.modules["__main__"].__name__ != "__mp_main__"
    ):
        raise LaunchError(
            "launch() was called in a process that multiprocessing has forked. Call it in the process "
            "that forked this one, because the connections to the rank server belong to that process."
        )
    if multiprocessing.parent_process() is not None or importing:
        raise LaunchError(
            "launch() was called in a child of multiprocessing, which imports the main script again. "
            "Put the call under `if __name__ == '__main__':`."
        )
    # A kernel is not a worker, even if its environment has a worker's variables.
    if {"TORCHELASTIC_RUN_ID", "RANK"} <= os.environ.keys() and not in_kernel():
        raise LaunchError("launch() was called in a worker of torchrun, which is already a rank.")


@contextmanager
def span(name: str) -> Iterator[None]:
    """Record the block's duration, shown as a bar called `name` in this rank's lane.

    Use it for work other than communication, to make overlaps visible in the timeline. Outside a rank, `span`
    does nothing.
    """
    if _context.recorder is None:
        yield
        return
    with _context.recorder.span(name):
        yield
