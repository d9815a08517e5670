"""Try all layouts of a model on a cluster. The cost explorer draws the fastest layouts that fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from helpers.plan.cluster import Cluster
from helpers.plan.layout import Layout, stage_layers
from helpers.plan.memory import Memory, memory_of
from helpers.plan.model_size import Model
from helpers.plan.step_time import StepTime, step_time, utilization

MICROBATCH_SIZES = (1, 2, 4, 8)


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
    model: Model,
    cluster: Cluster,
    batch: int,
    microbatches: Sequence[int] = (),
    cps: Sequence[int] = (1,),
) -> Iterator[Layout]:
    """Yield every layout that evenly divides GPUs, heads and batch, with TP inside a host and no empty stage.

    Args:
        microbatches: The allowed numbers of samples in a microbatch; by default 1, 2, 4 and 8.
        cps: The allowed sizes of CP; by default only 1. A larger size is tried if 2 x cp divides the
            sequence, because each rank has two chunks of the sequence to balance causal masks (notebook 16).
    """
    for tp, cp in product(_divisors(cluster.gpus_per_host, model.heads), cps):
        if cluster.gpus % (tp * cp) or model.heads % tp or (cp > 1 and model.sequence % (2 * cp)):
            continue
        for pp in _divisors(cluster.gpus // (tp * cp), model.layers):
            mesh = Layout(cluster.gpus // (tp * cp * pp), tp, pp, cp=cp)
            if -(-model.layers // pp) * (pp - 1) < model.layers:
                yield from _choices(model, mesh, batch, microbatches or MICROBATCH_SIZES)


def _choices(model: Model, mesh: Layout, batch: int, sizes: Sequence[int]) -> Iterator[Layout]:
    for microbatch in sizes:
        if batch % (mesh.dp * microbatch):
            continue
        parts = _interleavings(model, mesh, batch // (mesh.dp * microbatch))
        stages = range(4) if mesh.copies > 1 else (0,)
        for zero, recompute, interleave in product(stages, (False, True), parts):
            choice = microbatch, zero, recompute, interleave
            yield Layout(mesh.dp, mesh.tp, mesh.pp, *choice, cp=mesh.cp)


def _interleavings(model: Model, mesh: Layout, microbatches: int) -> list[int]:
    """Return the possible numbers of parts per stage. Interleaved 1F1B needs m to be a multiple of p.

    See Narayanan et al., arXiv 2104.04473, section 2.2.2.
    """
    if mesh.pp == 1 or microbatches % mesh.pp:
        return [1]
    return [v for v in (1, 2, 4, 8) if stage_layers(model.layers, mesh) % v == 0]


def plans(
    model: Model,
    cluster: Cluster,
    batch: int,
    microbatches: Sequence[int] = (),
    cps: Sequence[int] = (1,),
) -> list[Plan]:
    """Return a plan for every layout, whether it fits or not."""
    tried = layouts(model, cluster, batch, microbatches, cps)
    return [plan_of(model, cluster, layout, batch) for layout in tried]


def best_of_each_mesh(tried: Iterable[Plan]) -> list[Plan]:
    """Return the fastest plan that fits for each DP x TP x PP. Prefer the simpler of two equal plans.

    The remaining GPUs are used for CP.
    """
    kept: dict[tuple[int, int, int], Plan] = {}
    for plan in sorted(tried, key=_order):
        if plan.fits:
            kept.setdefault((plan.layout.dp, plan.layout.tp, plan.layout.pp), plan)
    return list(kept.values())


def _order(plan: Plan) -> tuple[float, int, bool, int, int, int]:
    at = plan.layout
    return plan.time.total_s, at.zero, at.recompute, at.interleave, at.tp, at.pp


def _divisors(number: int, max_divisor: int) -> list[int]:
    return [n for n in range(1, min(number, max_divisor) + 1) if number % n == 0]
