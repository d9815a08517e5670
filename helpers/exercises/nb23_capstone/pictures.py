"""Draw how far the cost model is off: predicted by published seconds of a step, run by run.

Notebooks call `published_runs`; the rows and their sources are in helpers/plan/published.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from helpers.plan.published import PUBLISHED, Published
from helpers.views.palette import COLLECTIVE, FAINT, INK, RECV, SEND
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import short_bytes

_LOOKS = ((SEND.color, "o"), (RECV.color, "s"), (COLLECTIVE.color, "D"))


def published_runs(runs: Sequence[Published] = PUBLISHED) -> Picture:
    """Draw a mark for each published run, right of 1 where the model predicts too slow a step.

    The text gives every row: the layout, the published and the predicted seconds, their ratio, and what the
    model says of the memory.
    """
    figure = new_figure(8.4, 1.5 + 0.24 * len(runs))
    axes = figure.add_subplot()
    sources = list(dict.fromkeys(run.source for run in runs))
    for source, (color, marker) in zip(sources, _LOOKS, strict=False):
        rows = [row for row, run in enumerate(runs) if run.source == source]
        ratios = [_ratio(runs[row]) for row in rows]
        label = source.partition(";")[0]
        axes.plot(ratios, rows, linestyle="", color=color, marker=marker, label=label)
    axes.axvline(1, color=INK, linewidth=1.2)
    axes.set_yticks(range(len(runs)), [_label(run) for run in runs], fontsize=8)
    axes.set_xlim(0.5, 1.65)
    axes.set_ylim(len(runs) - 0.4, -0.6)
    axes.set_xlabel("predicted / published time of a step")
    axes.grid(True, axis="x", color="#DDDDDD")
    axes.tick_params(axis="y", length=0, color=FAINT)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=8)
    return Picture(figure, "\n".join(_text(runs, sources)))


def _ratio(run: Published) -> float:
    return run.predict().time.total_s / run.step_s


def _label(run: Published) -> str:
    layout = run.layout
    words = [run.model.name, run.cluster.name, f"{layout.dp} x {layout.tp} x {layout.pp}"]
    words += ["recomputed"] if layout.recompute else []
    words += [f"{layout.interleave} parts"] if layout.interleave > 1 else []
    return ", ".join(words)


def _text(runs: Sequence[Published], sources: Sequence[str]) -> list[str]:
    lines = []
    for source in sources:
        lines.append(f"{source}:")
        for run in runs:
            if run.source == source:
                plan = run.predict()
                fits = "fits" if plan.fits else "does not fit"
                lines.append(
                    f"  {_label(run)}: published {run.step_s:.2f} s, predicted "
                    f"{plan.time.total_s:.2f} s, ratio {_ratio(run):.2f}; "
                    f"{short_bytes(plan.memory.total)}, {fits}"
                )
    return lines
