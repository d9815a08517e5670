"""Draw how many tokens each expert is given, and from which rank they came.

{name: Run of counts, one for each expert} -> expert_load() -> Picture
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from helpers.ranks.run import Run
from helpers.views.palette import FAINT, INK
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line
from helpers.views.rank_grid import _LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR = 0.3

Counts = Sequence[Sequence[int]]
"""For each rank, how many of its tokens go to each expert."""


def expert_load(runs: Mapping[str, Run]) -> Picture:
    """Draw a panel for each run and in it a bar for each expert: its tokens, by the rank they came from.

    run.values[rank]: how many of the rank's tokens go to each expert, as numbers or a tensor. The
    dotted line is the mean over the experts. Raises ValueError for other values.
    """
    tables = {one_line(name, 40): _counts(run) for name, run in runs.items()}
    if not tables:
        raise ValueError("expert_load needs at least one run: {'trained router': run}.")
    experts = max(len(table[0]) for table in tables.values())
    figure = new_figure(4.3 * len(tables) + 0.3, experts * _BAR + 1.25)
    panels = figure.subplots(1, len(tables), squeeze=False, sharex=True)[0]
    for axes, (name, table) in zip(panels, tables.items(), strict=True):
        _draw(axes, table)
        axes.set_title(name, fontsize=10, loc="left", parse_math=False)
    panels[0].set_ylabel("expert", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False
    )
    return Picture(figure, "\n".join(line for item in tables.items() for line in _text(*item)))


def _counts(run: Run) -> list[list[int]]:
    table = [_row(value) for value in run.values]
    if len({len(row) for row in table}) != 1 or not table[0]:
        raise ValueError("each rank must return one count for each expert.")
    return table


def _row(value: Any) -> list[int]:
    listed = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(n, int) for n in listed):
        raise ValueError("each rank must return its counts as whole numbers, one for each expert.")
    return list(listed)


def _draw(axes: Axes, table: Counts) -> None:
    experts = len(table[0])
    left = [0] * experts
    for rank, row in enumerate(table):
        look = _LOOKS[rank % len(_LOOKS)]
        axes.barh(
            range(experts), row, 0.72, left,
            color=look.tint, edgecolor=look.color, hatch=look.hatch, linewidth=1.0,
            label=f"from rank {rank}",
        )  # fmt: skip
        left = [done + more for done, more in zip(left, row, strict=True)]
    for expert, total in enumerate(left):
        axes.annotate(
            str(total), (total, expert), (4, 0), textcoords="offset points", va="center",
            fontsize=8.5, color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    axes.axvline(sum(left) / experts, color=FAINT, linestyle=":")
    axes.set_yticks(range(experts))
    axes.set_ylim(experts - 0.4, -0.6)
    axes.margins(x=0.12)
    axes.set_xlabel("tokens (dotted: mean)", fontsize=9)
    axes.tick_params(labelsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)


def _text(name: str, table: Counts) -> list[str]:
    totals = [sum(column) for column in zip(*table, strict=True)]
    mean = sum(totals) / len(totals)
    lines = [f"{name}: tokens of each expert (mean {mean:g}):"]
    for expert, total in enumerate(totals):
        came = ", ".join(f"{row[expert]} from rank {rank}" for rank, row in enumerate(table))
        lines.append(f"  expert {expert}: {total} ({came})")
    return lines
