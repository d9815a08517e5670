"""Compare ways to start ranks: one bar for each, as long as it took."""

from __future__ import annotations

from collections.abc import Mapping

from helpers.views.palette import INK, SPAN
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line


def startup_bars(seconds: Mapping[str, float], *, title: str | None = None) -> Picture:
    """Draw one bar for each way, from top to bottom, with its time and its ratio to the shortest.

    seconds: what the way is called -> from the call until every rank had ended. The text names the
    ways; it holds no measured value. Raises ValueError if nothing, or no time, was measured.
    """
    if not seconds or min(seconds.values()) <= 0:
        raise ValueError("startup_bars needs a time greater than 0 for each way to start.")
    names = [one_line(name, 40).replace("$", r"\$") for name in seconds]
    figure = new_figure(7.2, 0.45 * len(names) + 0.8)
    axes = figure.add_subplot()
    bars = axes.barh(range(len(names)), list(seconds.values()), 0.6, color=SPAN.tint, edgecolor=INK)
    shortest = min(seconds.values())
    labels = [_label(value, value / shortest) for value in seconds.values()]
    axes.bar_label(bars, labels, padding=5, color=INK)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * max(seconds.values()))
    axes.set_xlabel("from the call until every rank had ended [s]")
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title, loc="left")
    return Picture(figure, f"time to start ranks, measured: {', '.join(map(one_line, seconds))}")


def _label(seconds: float, ratio: float) -> str:
    return f"{seconds:.2g} s" + (f"  ({ratio:.0f}×)" if ratio >= 1.5 else "")
