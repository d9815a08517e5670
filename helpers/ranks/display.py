"""Show a launch in the notebook: a live view while it runs, and its output when it is done.

If a Run is the last value of a cell, the notebook draws it. After `run = launch(f)` its ranks' output would
stay hidden, so a Run with output is drawn at the end of the cell.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helpers.ranks.cells import ipython
from helpers.ranks.run import FailedRun, RunningRanks, StoppedRanks

if TYPE_CHECKING:
    from helpers.ranks.deadlock_watch import DeadlockDetector
    from helpers.ranks.run import Run
    from helpers.ranks.world import World

# Environment variable: "0" turns the live view off, for notebooks whose outputs are compared.
LIVE_VARIABLE = "REAL_RANKS_LIVE"

SHOW_AFTER_S = 0.6
SHOW_WAITS_AFTER_S = 2.0
REDRAW_INTERVAL_S = 0.3


class NoDisplay:
    """Shows nothing, for launches outside a notebook, checks and graders."""

    # Whether a reader may step through the run afterwards and look at its tensors.
    records_values = False

    def update(self, world: World, detector: DeadlockDetector, seconds: float) -> None:
        """Show the ranks' state, `seconds` after the beginning of the launch."""

    def show_stopped(self, world: World, detector: DeadlockDetector, seconds: float) -> None:
        """Show each rank's output and position at the moment when the reader pressed Stop."""

    def show_failed(self, run: Run) -> None:
        """Show a run whose launch is about to raise."""

    def clear(self) -> None:
        """Remove the live view."""

    def show_at_end(self, run: Run) -> None:
        """Show a run at the end of its cell if the cell does not show it. Outside a cell, print its notes."""
        for note in _notes_to_show(run):
            print(f"note: {note}", file=sys.stderr)


class Display(NoDisplay):
    """Shows a launch below its notebook cell."""

    _checked = ""

    def __init__(self) -> None:
        self.records_values = os.environ.get(LIVE_VARIABLE) != "0"
        self._handle: Any = None
        self._due = SHOW_AFTER_S

    def update(self, world: World, detector: DeadlockDetector, seconds: float) -> None:
        if seconds < self._due or os.environ.get(LIVE_VARIABLE) == "0":
            return
        self._due = seconds + REDRAW_INTERVAL_S
        from IPython.display import display

        from helpers.ranks.deadlock_watch import current_waits

        waits = current_waits(detector).waits if seconds >= SHOW_WAITS_AFTER_S else ()
        output = [member.recent_output for member in world.members]
        states = [member.state for member in world.members]
        view = RunningRanks(states, output, waits, seconds, world.hosts, self._checked)
        if self._handle is None:
            self._handle = display(view, display_id=True)
        else:
            self._handle.update(view)

    def show_stopped(self, world: World, detector: DeadlockDetector, seconds: float) -> None:
        from IPython.display import display

        from helpers.ranks.deadlock_watch import current_waits

        waits = current_waits(detector).waits
        output = [member.output for member in world.members]
        states = [member.state for member in world.members]
        self.clear()
        display(StoppedRanks(states, output, waits, seconds, world.hosts, self._checked))

    def clear(self) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(""))
            self._handle = None

    def show_failed(self, run: Run) -> None:
        self.clear()
        if any(run.output):
            from IPython.display import display

            display(FailedRun(run))

    def show_at_end(self, run: Run) -> None:
        self.clear()
        shell = ipython()
        if shell is None or not (any(run.output) or _notes_to_show(run)):
            return
        if _cell_state.is_running:
            _show_at_cell_end(shell, run)
        else:
            # The run was started by a widget's callback or a thread, so the end of the next cell would be the
            # wrong place.
            from IPython.display import display

            display(run)


class CheckDisplay(Display):
    """Shows the ranks of a slow check, one launch after another. The check calls `clear`."""

    def __init__(self, exercise: str) -> None:
        super().__init__()
        self._checked = exercise
        self._began = time.monotonic()
        self._due = SHOW_WAITS_AFTER_S

    def update(self, world: World, detector: DeadlockDetector, seconds: float) -> None:
        super().update(world, detector, time.monotonic() - self._began)

    def show_stopped(self, world: World, detector: DeadlockDetector, seconds: float) -> None:
        super().show_stopped(world, detector, time.monotonic() - self._began)


@dataclass
class _CellState:
    """Whether a cell is running in this kernel, not counting cells that a magic runs inside another cell."""

    is_running: bool = False


_cell_state = _CellState()


def track_cells(shell: Any) -> None:
    """Track the beginning and end of each cell from now on. Must be called in a cell."""

    def begin(info: Any) -> None:
        _cell_state.is_running = True

    def end(result: Any) -> None:
        if result.info.store_history:
            _cell_state.is_running = False

    _cell_state.is_running = True
    shell.events.register("pre_run_cell", begin)
    shell.events.register("post_run_cell", end)


def _notes_to_show(run: Run) -> tuple[str, ...]:
    """Return the notes that a reader must see even if the cell does not show the run."""
    return () if run.trace.imagined else run.notes  # notes of imagined runs list what was left out


def _show_at_cell_end(shell: Any, run: Run) -> None:
    """Draw a run when its cell has ended, unless the run is the cell's value."""

    def show(result: Any) -> None:
        from IPython.display import display

        shell.events.unregister("post_run_cell", show)
        if getattr(result, "result", None) is not run:
            display(run)

    shell.events.register("post_run_cell", show)
