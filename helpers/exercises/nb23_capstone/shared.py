"""Positions in a mesh and the cost of a layout, for exercises of notebook 23."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


def mesh_line(shape: Sequence[int], dim: int, rank: int) -> tuple[int, list[int]]:
    """Return a rank's coordinate along a dimension, and the ranks that differ only in this coordinate.

    The last dimension is the innermost, as in torch.
    """
    stride = math.prod(shape[dim + 1 :])
    coordinate = rank // stride % shape[dim]
    first = rank - coordinate * stride
    return coordinate, [first + i * stride for i in range(shape[dim])]


# --- the cost of a layout -------------------------------------------------------------------------

Mesh = tuple[int, int, int]
"""A layout: (dp, tp, pp)."""


@dataclass(frozen=True)
class Task:
    """A run to plan, with the names from the notebook's text. The formulas below are sums of named terms."""

    model: Mapping[str, int]
    cluster: Mapping[str, int]
    batch: int

    def meshes(self) -> list[Mesh]:
        """Return every layout allowed by the three conditions."""
        return [
            (dp, tp, pp)
            for tp in _divisors(self.cluster["gpus_per_host"])
            for pp in _divisors(self.model["layers"])
            for dp, rest in [divmod(self.cluster["gpus"], tp * pp)]
            if not rest and self.batch % dp == 0
        ]

    def nbytes(self, mesh: Mesh) -> float:
        return sum(self.byte_terms(mesh).values())

    def byte_terms(self, mesh: Mesh) -> dict[str, float]:
        """Return {term: bytes} for the GPU that uses the most memory."""
        dp, tp, pp = mesh
        own = self.model["parameters"] / (tp * pp)
        layer = 34 * self.model["sequence"] * self.model["hidden"]
        kept = layer * self.model["layers"] / pp * min(self.batch / dp, pp) / tp
        return {
            "weights and gradients": 4 * own,
            "optimizer state": 12 * own / dp,
            "activations": kept,
        }

    def seconds(self, mesh: Mesh) -> float:
        return self.slots(mesh) * sum(self.slot_terms(mesh).values()) + self.traffic(mesh)

    def slots(self, mesh: Mesh) -> float:
        dp, _, pp = mesh
        return self.batch / dp + pp - 1

    def slot_terms(self, mesh: Mesh) -> dict[str, float]:
        """Return {term: seconds} for one slot."""
        _, tp, pp = mesh
        compute = 6 * self.model["parameters"] / (tp * pp) * self.model["sequence"]
        message = 2 * self.model["sequence"] * self.model["hidden"]
        tensor = 4 * self.model["layers"] / pp * 2 * (tp - 1) / tp * message
        return {
            "compute": compute / self.cluster["flops"],
            "TP traffic": tensor / self.cluster["host_bandwidth"],
        }

    def traffic(self, mesh: Mesh) -> float:
        """Return the time for sending gradients, in seconds."""
        dp, tp, pp = mesh
        own = self.model["parameters"] / (tp * pp)
        return 2 * (dp - 1) / dp * 2 * own / self.cluster["network_bandwidth"]


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
