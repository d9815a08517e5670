"""Run a function with a late rank, a missing call or a slow link: `break_it(f, 4)`.

    controls -> broken() on real ranks (in_ranks.py) -> Run -> the player, below the controls

Nothing is simulated: each change runs the function again. At first, the last rank leaves out its last
call, so the other ranks wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from helpers.explorers.in_ranks import broken
from helpers.ranks.cells import learner_cells
from helpers.ranks.launcher import run_on_ranks
from helpers.ranks.options import Options
from helpers.ranks.run import Run
from helpers.ranks.settings import NO_SETTINGS, SentSettings, read_settings
from helpers.views.live import widget_view
from helpers.views.picture import Picture
from helpers.views.timeline import timeline

NOTHING = (-1, -1)
_MOST_RANKS = 8
_MOST_CALLS = 12
_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Break:
    """The changes to a run.

    Args:
        late: A rank that starts late, or -1.
        slow: A rank to which messages take longer, or -1.
        dropped: (rank, number of its call) of the call that is left out, or NOTHING.
    """

    ranks: int
    late: int = -1
    slow: int = -1
    dropped: tuple[int, int] = NOTHING

    def __str__(self) -> str:
        parts = [f"rank {self.late} is late"] if self.late >= 0 else []
        parts += [f"messages to rank {self.slow} are slow"] if self.slow >= 0 else []
        rank, number = self.dropped
        parts += [f"rank {rank} leaves out its call {number + 1}"] if rank >= 0 else []
        return ", ".join(parts) or "as it is"


@dataclass(frozen=True, repr=False)
class Broken:
    """A function on ranks, and controls to break it. Without a kernel, only the first picture is shown."""

    fn: Callable[..., Any]
    start: Break
    args: tuple[Any, ...] = ()
    settings: SentSettings = NO_SETTINGS

    def run(self, how: Break) -> Run:
        """Run the function once, with these changes."""
        return run_on_ranks(
            broken,
            Options(how.ranks, timeout=_TIMEOUT_S, record_values=True, own_temp=False),
            args=(self.fn, how.late, how.dropped, how.slow, *self.args),
            settings=self.settings,
        )

    def drawn(self, how: Break, run: Run) -> Picture:
        return timeline(run, title=f"{self.fn.__name__}, {how.ranks} ranks: {how}")

    def opening(self, made: Sequence[list[str] | None]) -> Break:
        """Return the first change to show. made: each rank's calls, or None if the unchanged run failed."""
        calls = made[-1] or ()
        return replace(self.start, dropped=(len(made) - 1, len(calls) - 1) if calls else NOTHING)

    def _first(self) -> Picture:
        how = self.opening(self.run(self.start).values)
        return self.drawn(how, self.run(how))

    def __repr__(self) -> str:
        return self._first().text

    def _repr_png_(self) -> bytes:
        return self._first()._repr_png_()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        live = widget_view(self.widget)
        if not live:
            return {}
        picture = self._first()
        return {"text/plain": picture.text, "text/html": picture.html()} | live

    def widget(self) -> Any:
        """Return the controls, with the player of the last run below them."""
        import ipywidgets as widgets

        def choice(words: str, options: Sequence[tuple[str, Any]]) -> Any:
            return widgets.Dropdown(options=options, value=options[0][1], description=words)

        calls = self.run(self.start).values
        ranks = choice("ranks", [(str(n), n) for n in range(1, _MOST_RANKS + 1)])
        ranks.value = self.start.ranks
        late = choice("late", _rank_options(self.start.ranks))
        slow = choice("slow link to", _rank_options(self.start.ranks))
        dropped = choice("left out", _call_options(calls))
        dropped.value = self.opening(calls).dropped
        shown = widgets.Output()
        controls = (ranks, late, slow, dropped)

        def show(change: Any = None) -> None:
            how = Break(*(control.value for control in controls))
            run = self.run(how)
            picture = self.drawn(how, run)
            data = {"text/plain": picture.text, "text/html": picture.html()}
            shown.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)

        def resize(change: Any) -> None:
            """Offer the ranks of the new world size, and the calls that they make without changes."""
            others = (late, slow, dropped)
            for control in others:
                control.unobserve(show, "value")
            made = self.run(Break(ranks.value)).values
            late.options = slow.options = _rank_options(ranks.value)
            dropped.options = _call_options(made)
            for control in others:
                control.value = control.options[0][1]
                control.observe(show, "value")
            show()

        for control in (late, slow, dropped):
            control.observe(show, "value")
        ranks.observe(resize, "value")
        show()
        panel = widgets.Box(list(controls), layout={"flex_flow": "row wrap"})
        return widgets.VBox([panel, shown])


def break_it(fn: Callable[..., Any], world_size: int = 4, *, args: Sequence[Any] = ()) -> Broken:
    """Run `fn(rank, world_size, *args)` on real ranks, with controls that break it.

    The controls make a rank late, slow down messages to a rank, leave out one call, or change the world
    size. Each change runs the function again and plays the run. At first the last rank leaves out its last
    call. Raises ValueError for more than 8 ranks.
    """
    if not 1 <= world_size <= _MOST_RANKS:
        raise ValueError(f"break_it runs on 1 to {_MOST_RANKS} ranks, not on {world_size!r}.")
    return Broken(fn, Break(world_size), tuple(args), read_settings(*learner_cells()))


def _rank_options(count: int) -> list[tuple[str, int]]:
    return [("nobody", -1), *((f"rank {rank}", rank) for rank in range(count))]


def _call_options(made: Sequence[list[str] | None]) -> list[tuple[str, tuple[int, int]]]:
    """Return the options for leaving out a call: the last calls of each rank. A failed run has none."""
    each = max(1, _MOST_CALLS // len(made))
    calls = [
        (f"rank {rank}, call {number + 1}: {name}", (rank, number))
        for rank, names in enumerate(made)
        for number, name in [*enumerate(names or ())][-each:]
    ]
    return [("nothing", NOTHING), *calls]
