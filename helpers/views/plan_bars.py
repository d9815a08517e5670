"""Draw the best layouts of a training run: where a step's time goes, and what a GPU holds.

    model, cluster, batch  ->  plan/search.py  ->  plan_picture()  ->  Picture

Notebooks call `plan_bars`; the cost explorer draws the same picture again for each setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from helpers.plan.cluster import Cluster
from helpers.plan.layout import Layout
from helpers.plan.model_size import Model
from helpers.plan.presets import cluster_of, model_called
from helpers.plan.search import Plan, fastest, one_for_each_mesh, smallest
from helpers.views.memory_bars import LOOKS as MEMORY_LOOKS
from helpers.views.palette import COLLECTIVE, FAILURE, INK, SEND, SPAN, WAIT
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import short_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 6
_TIME_LOOKS = (
    (SPAN.tint, ""),
    (WAIT.color, "----"),
    (COLLECTIVE.tint, "...."),
    (SEND.tint, "////"),
    (COLLECTIVE.color, "xxxx"),
)


def plan_bars(
    model: str,
    gpus: int,
    *,
    batch: int,
    gpu: str = "H100",
    network_gb_s: float | None = None,
    shown: int = SHOWN,
) -> Picture:
    """Draw the fastest layouts of a model that fit on that many GPUs, one for each DP x TP x PP.

    model: "Llama 3 8B", "Llama 3 70B", "GPT-3 175B", "Llama 3 405B" or "GPT 1T". gpu: "H100" or "A100".
    batch: samples in a step, in all. network_gb_s: another network between the hosts, in gigabytes a
    second for each GPU. Raises ValueError for names that it does not know.
    """
    cluster = cluster_of(gpu, gpus)
    if network_gb_s is not None:
        cluster = replace(cluster, network_bandwidth=network_gb_s * 1e9)
    return plan_picture(model_called(model), cluster, batch, shown)


def plan_picture(
    model: Model,
    cluster: Cluster,
    batch: int,
    shown: int = SHOWN,
    microbatches: Sequence[int] = (),
) -> Picture:
    """Draw the fastest plans from top to bottom: left the time of a step, right the memory of a GPU."""
    plans = one_for_each_mesh(fastest(model, cluster, batch, microbatches))[:shown]
    title = f"{model.name}: {model.parameters / 1e9:,.1f} billion parameters on {cluster.name}, "
    title += f"{batch:,} samples a step"
    if not plans:
        return _nothing_fits(title, cluster, smallest(model, cluster, batch, microbatches))
    figure = new_figure(9.6, 1.7 + 0.48 * len(plans))
    time, memory = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    _bars(time, [plan.time.parts() for plan in plans], _TIME_LOOKS, _seconds)
    _bars(memory, [plan.memory.parts() for plan in plans], MEMORY_LOOKS, short_bytes)
    time.set_yticks(range(len(plans)), [_label(plan.layout) for plan in plans], fontsize=8)
    time.set_xlabel("a step [s]")
    memory.set_xlabel("held by the fullest GPU [GB]")
    memory.xaxis.set_major_formatter(lambda value, _: f"{value / 1e9:.0f}")
    limit = cluster.memory_bytes
    memory.axvline(limit, color=FAILURE.color, linewidth=2.2, label=f"limit {short_bytes(limit)}")
    memory.set_xlim(0, 1.22 * limit)
    for axes in (time, memory):
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right"]].set_visible(False)
    handles = [*time.containers, *memory.containers, *memory.lines]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8.5)
    time.invert_yaxis()
    figure.suptitle(title, fontsize=10.5, x=0.01, ha="left", parse_math=False)
    return Picture(figure, "\n".join([f"{title}:", *map(_line, plans)]))


def _bars(
    axes: Axes,
    parts: Sequence[Mapping[str, float]],
    looks: Sequence[tuple[str, str]],
    write: Callable[[float], str],
) -> None:
    """Stack each plan's parts, and write the sum behind them."""
    ends = [0.0] * len(parts)
    for name, (color, hatch) in zip(parts[0], looks, strict=False):
        sizes = [own[name] for own in parts]
        axes.barh(
            range(len(parts)), sizes, 0.62, ends, color=color, hatch=hatch, edgecolor=INK,
            linewidth=0.6, label=name,
        )  # fmt: skip
        ends = [end + size for end, size in zip(ends, sizes, strict=True)]
    for row, end in enumerate(ends):
        axes.annotate(
            write(end), (end, row), (5, 0), textcoords="offset points", va="center", fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    axes.set_xlim(0, 1.16 * max(ends))


def _nothing_fits(title: str, cluster: Cluster, least: Plan | None) -> Picture:
    why = "no layout deals this batch out evenly over these GPUs"
    if least is not None:
        why = (
            f"nothing fits: the smallest layout, {least.layout}, needs "
            f"{short_bytes(least.memory.total)} of {short_bytes(cluster.memory_bytes)}"
        )
    figure = new_figure(9.6, 1.2)
    figure.text(0.01, 0.7, title, fontsize=10.5, parse_math=False)
    figure.text(0.01, 0.3, why, fontsize=9.5, color=FAILURE.color, parse_math=False)
    return Picture(figure, f"{title}: {why}")


def _label(layout: Layout) -> str:
    mesh, *rest = str(layout).split(", ")
    return f"{mesh}\n{', '.join(rest)}"


def _line(plan: Plan) -> str:
    parts = ", ".join(f"{name} {_seconds(s)}" for name, s in plan.time.parts().items() if s > 0)
    return (
        f"  {plan.layout}: {_seconds(plan.time.total_s)} a step ({parts}), MFU "
        f"{plan.utilization:.0%}, {short_bytes(plan.memory.total)} a GPU"
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:,.0f} s"
