"""The result of a launch: frozen data that views and checks read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.trace.chrome import chrome_trace
from helpers.trace.events import Trace, Wait


class PlainError(Exception):
    """An error for which IPython shows only the message, because the engine's frames teach nothing."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class RankFailure(PlainError):
    """Base class of all failures of a launch's ranks. `run` holds the results up to the failure."""

    run: Run | None = None

    @property
    def title(self) -> str:
        """The failure in one line, without details."""
        return str(self).split("\n", 1)[0]

    def describe(
        self, *, is_alone: bool = False, with_waits: bool = True, with_launch_hint: bool = True
    ) -> str:
        """Return the failure's text for a reader who did not call `launch`.

        Args:
            is_alone: Whether the reader's function needs no other rank, in which case ranks are not
                mentioned.
            with_waits: Whether to list each rank's wait in a deadlock. Callers with a drawing of the waits do
                not need this list.
            with_launch_hint: Whether to mention helpful arguments of `launch`.
        """
        return str(self)


@dataclass(frozen=True)
class Run:
    """The result of one launch.

    Attributes:
        values: Each rank's return value; None if it did not return.
        output: Each rank's printed text; if this is more than 100,000 bytes, only its beginning and its end.
            A displayed Run shows the first and last 100 lines of each rank, and replaces the rest of lines
            longer than 500 characters with an ellipsis.
        trace: Every communication call.
        failure: The launch's failure, or None.
        seconds: The time from the call to its result in the launching process.
        notes: Further notes for the reader.
        replaced: Functions of torch and of the course that a grader's ranks reported as replaced.
        thread_errors: Exceptions, in words, that ended threads of successful ranks.
    """

    world_size: int
    values: list[Any]
    output: list[str]
    trace: Trace
    failure: RankFailure | None = None
    backend: str = "gloo"
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    replaced: tuple[str, ...] = ()
    thread_errors: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of each rank; empty if all ran on this machine."""
        return self.trace.hosts

    @property
    def ok(self) -> bool:
        return self.failure is None

    def save_trace(self, path: str | Path) -> Path:
        """Write the calls as Chrome trace JSON, for Perfetto and chrome://tracing. Return the path."""
        path = Path(path)
        path.write_text(json.dumps(chrome_trace(self.trace)), encoding="utf-8")
        return path


@dataclass(frozen=True)
class RunningRanks:
    """The ranks of a launch at one moment.

    Attributes:
        states: Each rank's state: "running", "returned", "failed" or "died".
        output: Each rank's printed text.
        waits: The waits of the waiting ranks.
        seconds: The launch's running time so far.
        hosts: The host of each rank; empty if all are on this machine.
        checked: The exercise whose answer is being checked on them, or "".
    """

    states: Sequence[str]
    output: Sequence[str]
    waits: Sequence[Wait]
    seconds: float
    hosts: Sequence[str] = ()
    checked: str = ""


@dataclass(frozen=True)
class FailedRun:
    """A run shown just above its failure. The failure's message already contains the description."""

    run: Run


class StoppedRanks(RunningRanks):
    """The ranks of a launch at the moment when the reader stopped it."""
