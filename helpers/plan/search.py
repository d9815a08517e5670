"""Try all layouts of a model on a cluster. The cost explorer draws the fastest ones that fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from helpers.plan.cluster import Cluster
from helpers.plan.layout import Layout, stage_layers
from helpers.plan.memory import Memory, memory_of
from helpers.plan.model_size import Model
from helpers.plan.step_time import StepTime, step_time, utilization

MICROBATCHES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Plan:
    """One layout, with its memory and the time of a step."""

    model: Model
    cluster: Cluster
    batch: int
    layout: Layout
    memory: Memory
    time: StepTime

    @property
    def fits(self) -> bool:
        return self.memory.total <= self.cluster.memory_bytes

    @property
    def utilization(self) -> float:
        """The MFU, between 0 and 1."""
        return utilization(self.model, self.cluster, self.time.total_s, self.batch)


def plan_of(model: Model, cluster: Cluster, layout: Layout, batch: int) -> Plan:
    """Compute the plan of one layout. Raise ValueError if the batch cannot be divided evenly."""
    memory = memory_of(model, layout, batch)
    return Plan(model, cluster, batch, layout, memory, step_time(model, cluster, layout, batch))


def layouts(
    model: Model, cluster: Cluster, batch: int, microbatches: Sequence[int] = ()
) -> Iterator[Layout]:
    """Yield every layout that divides GPUs, heads and batch, with TP inside a host and no empty stage.

    microbatches: the allowed numbers of samples in a microbatch; by default 1, 2, 4 and 8.
    """
    for tp in _divisors(cluster.gpus_per_host, model.heads):
        if cluster.gpus % tp or model.heads % tp:
            continue
        for pp in _divisors(cluster.gpus // tp, model.layers):
            dp = cluster.gpus // tp // pp
            if -(-model.layers // pp) * (pp - 1) < model.layers:
                yield from _choices(model, Layout(dp, tp, pp), batch, microbatches or MICROBATCHES)


def _choices(model: Model, mesh: Layout, batch: int, sizes: Sequence[int]) -> Iterator[Layout]:
    for microbatch in sizes:
        if batch % (mesh.dp * microbatch):
            continue
        parts = _interleavings(model, mesh, batch // (mesh.dp * microbatch))
        stages = range(4) if mesh.dp > 1 else (0,)
        for zero, recompute, interleave in product(stages, (False, True), parts):
            yield Layout(mesh.dp, mesh.tp, mesh.pp, microbatch, zero, recompute, interleave)


def _interleavings(model: Model, mesh: Layout, microbatches: int) -> list[int]:
    """Return into how many parts a stage can be cut. Interleaved 1F1B needs m to be a multiple of p.

    (Narayanan et al., arXiv 2104.04473, section 2.2.2.)
    """
    if mesh.pp == 1 or microbatches % mesh.pp:
        return [1]
    return [v for v in (1, 2, 4, 8) if stage_layers(model.layers, mesh) % v == 0]


def plans(
    model: Model, cluster: Cluster, batch: int, microbatches: Sequence[int] = ()
) -> list[Plan]:
    """Return a plan for every layout, whether it fits or not."""
    tried = layouts(model, cluster, batch, microbatches)
    return [plan_of(model, cluster, layout, batch) for layout in tried]


def best_of_each_mesh(tried: Iterable[Plan]) -> list[Plan]:
    """Return the fastest plan that fits for each DP x TP x PP. If two are equal, return the simpler one."""
    kept: dict[tuple[int, int, int], Plan] = {}
    for plan in sorted(tried, key=_order):
        if plan.fits:
            kept.setdefault((plan.layout.dp, plan.layout.tp, plan.layout.pp), plan)
    return list(kept.values())


def _order(plan: Plan) -> tuple[float, int, bool, int, int, int]:
    at = plan.layout
    return plan.time.total_s, at.zero, at.recompute, at.interleave, at.tp, at.pp


def _divisors(number: int, most: int) -> list[int]:
    return [n for n in range(1, min(number, most) + 1) if number % n == 0]
