"""Draw the distance between two training runs, step by step, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helpers.views.curve import _COLORS, _LINE_STYLES, _MARKS
from helpers.views.palette import FAINT
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line, plural

ZERO_DRAWN_AT = 1e-17
"""The height at which a difference of exactly zero is drawn, because a logarithmic axis has no zero."""

_ROUNDING_ERROR = 1e-13
"""The limit below which differences come only from the order of additions in float64."""


def divergence(
    pairs: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
    *,
    target: float | None = None,
    title: str | None = None,
) -> Picture:
    """Draw, for each pair of training runs, the largest difference in any weight after every step.

    pairs: {name: (weights of one run, weights of the other run)}, with one tensor per step. target: an
    allowed difference, drawn as a line. The text contains the names and lengths of the pairs, but no
    measured value.
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(6.4, 3.9)
    axes = figure.add_subplot()
    highest = 1.0
    for index, (name, (mine, theirs)) in enumerate(pairs.items()):
        apart = [
            max(ZERO_DRAWN_AT, _largest_difference(a, b)) for a, b in zip(mine, theirs, strict=True)
        ]
        highest = max([highest, *apart])
        axes.plot(
            range(1, len(apart) + 1),
            apart,
            color=_COLORS[index % len(_COLORS)],
            marker=_MARKS[index % len(_MARKS)],
            markevery=max(1, len(apart) // 10),
            linestyle=_LINE_STYLES[index % len(_LINE_STYLES)],
            label=one_line(name).replace("$", r"\$"),
        )
    axes.set_yscale("log")
    axes.set_ylim(ZERO_DRAWN_AT / 2, highest * 5)
    axes.set_yticks([10.0**k for k in range(-16, 1, 4)])
    axes.minorticks_off()
    axes.axhspan(ZERO_DRAWN_AT / 2, _ROUNDING_ERROR, color="#EEEEEE", zorder=0)
    axes.annotate(
        "rounding (float64)", (1, _ROUNDING_ERROR), (0, -11), ha="right", color="#555555", fontsize=9,
        xycoords=("axes fraction", "data"), textcoords="offset points",
    )  # fmt: skip
    if target is not None:
        axes.axhline(target, color=FAINT, linestyle=":")
        axes.annotate(
            f"allowed: {target:g}", (1, target), (0, 3), ha="right", color="#555555", fontsize=9,
            xycoords=("axes fraction", "data"), textcoords="offset points",
        )  # fmt: skip
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.set_ylabel("largest difference of a weight")
    axes.grid(True, color="#DDDDDD")
    axes.spines[["top", "right"]].set_visible(False)
    if pairs:
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    if title:
        axes.set_title(title, loc="left")
    return Picture(figure, _describe_pairs(pairs))


def _largest_difference(weights: Any, other_weights: Any) -> float:
    return float((weights.double() - other_weights.double()).abs().max())


def _describe_pairs(pairs: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> str:
    lines = ["largest difference of a weight after each step:"]
    lines += [
        f"  {one_line(name)}: {plural(len(mine), 'step')}" for name, (mine, _) in pairs.items()
    ]
    return "\n".join(lines)
