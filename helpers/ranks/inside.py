"""What a rank's own code may ask of the machinery around it: `span`, and whether it is a rank."""

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
class _Here:
    """What the rank that this process is was given; nothing in every other process."""

    folder: str = ""
    ask: Callable[[list[Any]], Any] | None = None
    report: Callable[[str], None] | None = None
    recorder: Recorder | None = None


_here = _Here()


def become_rank(
    folder: str,
    ask: Callable[[list[Any]], Any],
    report: Callable[[str], None],
    recorder: Recorder | None,
) -> None:
    """Note that this process is a rank: its launch's folder, how it asks its launcher and reports to it.

    report: sends names of functions that were replaced. recorder: records the rank's calls.
    """
    _here.folder, _here.ask, _here.report, _here.recorder = folder, ask, report, recorder


def ask_launcher(question: list[Any]) -> Any:
    """Ask the launcher for what must not be in this process; give its reply, plain JSON.

    Raise TimeoutError if none comes.
    """
    if _here.ask is None:
        raise RuntimeError("only a rank has a launcher that it can ask")
    return _here.ask(question)


def replacement_reporter() -> Callable[[str], None]:
    """Return what sends names of replaced functions, one a line, to the launcher. It looks nothing up."""
    if _here.report is None:
        raise RuntimeError("only a rank has a launcher to which it can report")
    return _here.report


def this_rank() -> object:
    """Return the object that holds what this rank was given, to see whether it still has the same parts."""
    return _here


def launch_folder() -> Path:
    """Return the folder that all ranks of this launch have in common; it goes when the launch ends."""
    if not _here.folder:
        raise RuntimeError("only a rank has a folder of its launch")
    return Path(_here.folder)


def calls_made() -> int:
    """Return how many calls and spans this rank has recorded until now."""
    return _here.recorder.count if _here.recorder is not None else 0


def inside_rank() -> bool:
    """Tell whether this process is a rank, or was started by one."""
    return os.environ.get("REAL_RANKS_INSIDE") == "1"


def refuse_where_ranks_must_not_start() -> None:
    """Raise LaunchError inside a rank, a multiprocessing child or a torchrun worker."""
    import multiprocessing

    if inside_rank():
        raise LaunchError("launch() was called inside a rank. Call it from the notebook.")
    # While a spawned child imports the main script again, it does not know its parent yet.
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
    # A kernel is not a worker, whatever is in its environment.
    if {"TORCHELASTIC_RUN_ID", "RANK"} <= os.environ.keys() and not in_kernel():
        raise LaunchError("launch() was called in a worker of torchrun, which is already a rank.")


@contextmanager
def span(name: str) -> Iterator[None]:
    """Record the time that the block takes under `name`, as a bar in this rank's lane.

    Use it around work that is not communication, so that the timeline shows what overlaps with
    what. Outside a rank it does nothing.
    """
    if _here.recorder is None:
        yield
        return
    with _here.recorder.span(name):
        yield
