"""What a launch gives back: frozen data that views and checks read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.trace.chrome import chrome_trace
from helpers.trace.events import Trace


class PlainError(Exception):
    """An error of which IPython shows the message alone: the frames of the engine teach nothing."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class RankFailure(PlainError):
    """Base of all failures that a launch's ranks had. `.run` is what was seen until then."""

    run: Run | None = None

    @property
    def title(self) -> str:
        """One line: what happened, without the details."""
        return str(self).split("\n", 1)[0]


@dataclass(frozen=True)
class Run:
    """What happened on each rank of one launch.

    values[r]: what rank r returned (None if it did not return). output[r]: what it printed, of more than
    100,000 bytes the beginning and the end. Where a Run is shown, of a rank's output the first and last 100
    lines are, each cut to 500 characters (the cut marked by an ellipsis); output[r] has the lines whole.
    trace: every communication call. failure: None, or why the launch did not end well.
    seconds: call to result in the launching process. notes: what else the reader should know.
    replaced: functions of torch and of the course that a grader's ranks reported as replaced.
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

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of each rank; empty where all ran on this machine."""
        return self.trace.hosts

    @property
    def ok(self) -> bool:
        return self.failure is None

    def save_trace(self, path: str | Path) -> Path:
        """Write the recorded calls as Chrome trace JSON, for Perfetto and chrome://tracing; give the path."""
        path = Path(path)
        path.write_text(json.dumps(chrome_trace(self.trace)), encoding="utf-8")
        return path
