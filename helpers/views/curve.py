"""Draw measured curves: one line for each series, on linear or logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from helpers.views.palette import COLLECTIVE, FAILURE, FORWARD, RECV, SEND, SPAN, WAIT
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line, plural

_COLORS = [look.color for look in (SEND, FAILURE, RECV, COLLECTIVE, WAIT, FORWARD, SPAN)]
_MARKS = "osD^vX*"
_LINE_STYLES = ("-", "--", "-.", ":")


def curves(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x: str,
    y: str,
    log: str = "",
    title: str | None = None,
) -> Picture:
    """Draw each series of (x, y) points as a separate line.

    x, y: the labels of the axes, with units. log: the axes with a logarithmic scale: "", "x", "y" or "xy".
    The text contains the names and lengths of the series, but no measured value.
    """
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    for index, (name, points) in enumerate(series.items()):
        hidden = any(_is_covered(points, later) for later in [*series.values()][index + 1 :])
        axes.plot(
            [point[0] for point in points],
            [point[1] for point in points],
            color=_COLORS[index % len(_COLORS)],
            marker=_MARKS[index % len(_MARKS)],
            linestyle=_LINE_STYLES[index % len(_LINE_STYLES)],
            label=one_line(name).replace("$", r"\$"),
            linewidth=5 if hidden else None,
            markersize=11 if hidden else None,
            alpha=0.45 if hidden else None,
        )
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if all(isinstance(point[0], int) for points in series.values() for point in points):
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))  # avoid steps of 2.5
    for axis, scale in enumerate((axes.set_xscale, axes.set_yscale)):
        # A fit to times from a busy machine can be negative everywhere, which makes matplotlib warn.
        if "xy"[axis] in log and any(point[axis] > 0 for line in series.values() for point in line):
            scale("log")
    axes.grid(True, color="#DDDDDD")
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) > 1:
        axes.legend(frameon=False)
    if title:
        axes.set_title(title, loc="left")
    return Picture(figure, _describe_series(series, x, y))


def _is_covered(
    points: Sequence[tuple[float, float]], later: Sequence[tuple[float, float]]
) -> bool:
    """Return whether a later series covers this one. If so, this series is drawn broader to be visible."""
    near = 1e-3 * max((abs(y) for _, y in later), default=0)
    return len(points) == len(later) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= near for a, b in zip(points, later, strict=True)
    )


def _describe_series(series: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str) -> str:
    lines = [f"{y} against {x}:"]
    lines += [
        f"  {one_line(name)}: {plural(len(points), 'point')}" for name, points in series.items()
    ]
    return "\n".join(lines)
