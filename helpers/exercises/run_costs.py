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


def meshes(task: Task, forgotten: str = "") -> Iterator[Mesh]:
    """Give every layout that the three conditions allow, or the other two if one is `forgotten`."""
    hosts_of, layers = task.cluster["gpus_per_host"], task.model["layers"]
    for tp in _sizes(hosts_of, forgotten == "tp"):
        for pp in _sizes(layers, forgotten == "pp"):
            dp, rest = divmod(task.cluster["gpus"], tp * pp)
            if not rest and (forgotten == "dp" or task.batch % dp == 0):
                yield dp, tp, pp


def _sizes(most: int, all_of_them: bool) -> list[int]:
    return [n for n in range(1, most + 1) if all_of_them or most % n == 0]


def nbytes_of(task: Task, mesh: Mesh) -> float:
    """Give the bytes of the fullest GPU."""
    return sum(byte_terms(task, mesh).values())


def byte_terms(task: Task, mesh: Mesh) -> dict[str, float]:
    dp, tp, pp = mesh
    own = task.model["parameters"] / (tp * pp)
    token = 34 * task.model["sequence"] * task.model["hidden"]
    held = min(task.batch / dp, pp)
    return {
        "weights and gradients": 4 * own,
        "optimizer state": 12 * own / dp,
        "activations": token * (task.model["layers"] / pp) * held / tp,
    }


def seconds_of(task: Task, mesh: Mesh) -> float:
    """Give the seconds of a step."""
    slot, traffic = slot_terms(task, mesh), dp_seconds(task, mesh)
    return slots(task, mesh) * sum(slot.values()) + traffic


def slots(task: Task, mesh: Mesh) -> float:
    """Count m + p - 1, bubble and all; a whole number where dp divides the batch."""
    dp, _, pp = mesh
    return task.batch / dp + pp - 1


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
