"""Run a function with a late rank, a missing call or a slow link: `break_it(f, 4)`.

    controls -> run_with_faults() on real ranks (in_ranks.py) -> Run -> the player, below the controls

Nothing is simulated: each change runs the function again. Initially, the last rank leaves out its last
call, so the other ranks wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from helpers.explorers.in_ranks import run_with_faults
from helpers.ranks.carried_settings import NO_SETTINGS, SentSettings, read_settings
from helpers.ranks.cells import learner_cells
from helpers.ranks.failures import Deadlock
from helpers.ranks.launch_options import Options
from helpers.ranks.launcher import run_on_ranks
from helpers.ranks.run import Run
from helpers.views.live import require_live, show_controls, show_part
from helpers.views.picture import Picture
from helpers.views.timeline import timeline

NO_CALL = (-1, -1)
_MAX_RANKS = 8
_MAX_CALLS = 12
_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Faults:
    """The faults to inject into a run.

    Args:
        late_rank: A rank that starts late, or -1 for none.
        slow_rank: A rank whose received messages take longer, or -1 for none.
        dropped_call: (rank, number of its call) for the call to leave out, or NO_CALL.
    """

    ranks: int
    late_rank: int = -1
    slow_rank: int = -1
    dropped_call: tuple[int, int] = NO_CALL

    def __str__(self) -> str:
        parts = [f"rank {self.late_rank} is late"] if self.late_rank >= 0 else []
        parts += [f"messages to rank {self.slow_rank} are slow"] if self.slow_rank >= 0 else []
        rank, number = self.dropped_call
        parts += [f"rank {rank} leaves out its call {number + 1}"] if rank >= 0 else []
        return ", ".join(parts) or "as it is"


@dataclass(frozen=True, repr=False)
class FaultExplorer:
    """A function on ranks, and menus for breaking it. Without a kernel, only a picture is shown."""

    fn: Callable[..., Any]
    start: Faults
    args: tuple[Any, ...] = ()
    settings: SentSettings = NO_SETTINGS

    def run(self, faults: Faults) -> Run:
        """Run the function once, with these faults."""
        return run_on_ranks(
            run_with_faults,
            Options(faults.ranks, timeout=_TIMEOUT_S, record_values=True, own_temp=False),
            args=(self.fn, faults.late_rank, faults.dropped_call, faults.slow_rank, *self.args),
            settings=self.settings,
        )

    def draw(self, faults: Faults, run: Run) -> Picture:
        picture = timeline(run, title=f"{self.fn.__name__}, {faults.ranks} ranks: {faults}")
        if run.failure is None or (
            isinstance(run.failure, Deadlock) and faults.dropped_call != NO_CALL
        ):
            return picture  # A dropped call is meant to make others wait.
        return replace(picture, text=f"{picture.text}\n{type(run.failure).__name__}: {run.failure}")

    def first_faults(self, calls_by_rank: Sequence[list[str] | None]) -> Faults:
        """Return the faults to show first.

        calls_by_rank: each rank's calls, or None if the unchanged run failed.
        """
        calls = calls_by_rank[-1] or ()
        return replace(
            self.start, dropped_call=(len(calls_by_rank) - 1, len(calls) - 1) if calls else NO_CALL
        )

    def _first_picture(self) -> Picture:
        faults = self.first_faults(self.run(self.start).values)
        return self.draw(faults, self.run(faults))

    def __repr__(self) -> str:
        return self._first_picture().text

    def _repr_png_(self) -> bytes:
        return self._first_picture()._repr_png_()

    def _ipython_display_(self) -> None:
        require_live()
        menus, faults = self.menus(lambda chosen: show(self._player(chosen)))
        show_controls(menus, "Run this cell again to use the menus.")
        show = show_part(self._player(faults))

    def _player(self, faults: Faults) -> dict[str, Any]:
        picture = self.draw(faults, self.run(faults))
        return {"text/plain": picture.text, "text/html": picture.html()}

    def menus(self, show: Callable[[Faults], None]) -> tuple[Any, Faults]:
        """Return the menus, and their initial faults.

        show: a function that is called with the chosen faults after each change.
        """
        import ipywidgets as widgets

        def choice(words: str, options: Sequence[tuple[str, Any]]) -> Any:
            return widgets.Dropdown(options=options, value=options[0][1], description=words)

        calls = self.run(self.start).values
        ranks = choice("ranks", [(str(n), n) for n in range(1, _MAX_RANKS + 1)])
        ranks.value = self.start.ranks
        late_rank = choice("late", _rank_options(self.start.ranks))
        slow_rank = choice("slow link to", _rank_options(self.start.ranks))
        dropped_call = choice("left out", _call_options(calls))
        dropped_call.value = self.first_faults(calls).dropped_call
        controls = (ranks, late_rank, slow_rank, dropped_call)

        def on_change(change: Any = None) -> None:
            show(Faults(*(control.value for control in controls)))

        def on_world_size_change(change: Any) -> None:
            """Offer the ranks of the new world size, and their calls in a run without faults."""
            others = (late_rank, slow_rank, dropped_call)
            for control in others:
                control.unobserve(on_change, "value")
            calls_by_rank = self.run(Faults(ranks.value)).values
            late_rank.options = slow_rank.options = _rank_options(ranks.value)
            dropped_call.options = _call_options(calls_by_rank)
            for control in others:
                control.value = control.options[0][1]
                control.observe(on_change, "value")
            on_change()

        for control in (late_rank, slow_rank, dropped_call):
            control.observe(on_change, "value")
        ranks.observe(on_world_size_change, "value")
        menus = widgets.Box(list(controls), layout={"flex_flow": "row wrap"})
        return menus, self.first_faults(calls)


def break_it(
    fn: Callable[..., Any], world_size: int = 4, *, args: Sequence[Any] = ()
) -> FaultExplorer:
    """Run `fn(rank, world_size, *args)` on real ranks, with controls that break it.

    The controls delay a rank, slow down messages to a rank, leave out one call, or change the world size.
    Each change runs the function again and plays the run. Initially, the last rank leaves out its last call.
    Raises ValueError for more than 8 ranks.
    """
    if not 1 <= world_size <= _MAX_RANKS:
        raise ValueError(f"break_it runs on 1 to {_MAX_RANKS} ranks, not on {world_size!r}.")
    return FaultExplorer(fn, Faults(world_size), tuple(args), read_settings(*learner_cells()))


def _rank_options(count: int) -> list[tuple[str, int]]:
    return [("nobody", -1), *((f"rank {rank}", rank) for rank in range(count))]


def _call_options(calls_by_rank: Sequence[list[str] | None]) -> list[tuple[str, tuple[int, int]]]:
    """Return the options for leaving out a call: the last calls of each rank; none if it failed."""
    each = max(1, _MAX_CALLS // len(calls_by_rank))
    calls = [
        (f"rank {rank}, call {number + 1}: {name}", (rank, number))
        for rank, names in enumerate(calls_by_rank)
        for number, name in [*enumerate(names or ())][-each:]
    ]
    return [("nothing", NO_CALL), *calls]
