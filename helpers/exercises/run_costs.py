"""The formulas of `plan_a_run`: which layouts there are, the bytes of a GPU, the seconds of a step.

plan_cases.py finds the best layout by them, look_at_plan.py the mistake in another. Each formula is a
sum of named terms, so that a term which an answer has wrong can be named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Mesh = tuple[int, int, int]
"""(dp, tp, pp)"""


@dataclass(frozen=True)
class Task:
    """What an answer is given: model and cluster by the names of the task, and the samples of a step."""

    model: Mapping[str, int]
    cluster: Mapping[str, int]
    batch: int


def meshes(task: Task) -> Iterator[Mesh]:
    """Give every layout that the three conditions allow."""
    gpus, hosts_of = task.cluster["gpus"], task.cluster["gpus_per_host"]
    for tp in (n for n in range(1, hosts_of + 1) if hosts_of % n == 0):
        for pp in (n for n in range(1, task.model["layers"] + 1) if task.model["layers"] % n == 0):
            dp, rest = divmod(gpus, tp * pp)
            if not rest and task.batch % dp == 0:
                yield dp, tp, pp


def nbytes_of(task: Task, mesh: Mesh) -> float:
    """Give the bytes of the fullest GPU."""
    return sum(byte_terms(task, mesh).values())


def byte_terms(task: Task, mesh: Mesh) -> dict[str, float]:
    dp, tp, pp = mesh
    own = task.model["parameters"] / (tp * pp)
    token = 34 * task.model["sequence"] * task.model["hidden"]
    held = min(task.batch // dp, pp)
    return {
        "weights and gradients": 4 * own,
        "optimizer state": 12 * own / dp,
        "activations": token * (task.model["layers"] / pp) * held / tp,
    }


def seconds_of(task: Task, mesh: Mesh) -> float:
    """Give the seconds of a step."""
    slot, traffic = slot_terms(task, mesh), dp_seconds(task, mesh)
    return slots(task, mesh) * sum(slot.values()) + traffic


def slots(task: Task, mesh: Mesh) -> int:
    """Count m + p - 1, bubble and all."""
    dp, _, pp = mesh
    return task.batch // dp + pp - 1


def slot_terms(task: Task, mesh: Mesh) -> dict[str, float]:
    _, tp, pp = mesh
    own, cluster = task.model["parameters"] / (tp * pp), task.cluster
    message = 2 * task.model["sequence"] * task.model["hidden"]
    calls = 4 * task.model["layers"] / pp
    return {
        "compute": 6 * own * task.model["sequence"] / cluster["flops"],
        "TP traffic": calls * 2 * (tp - 1) / tp * message / cluster["host_bandwidth"],
    }


def dp_seconds(task: Task, mesh: Mesh) -> float:
    dp, tp, pp = mesh
    own = task.model["parameters"] / (tp * pp)
    return 2 * (dp - 1) / dp * 2 * own / task.cluster["network_bandwidth"]
