"""Run answers of 22.2: trainers and generators of one job, which store a matrix in different layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch


class Role(NamedTuple):
    """The data of one rank.

    part: a trainer's rows of the matrix, or a generator's columns, zeros. mixes: the matrices with which the
    rank's function turns one tensor into another; for a generator, one matrix [size, rows] for each batch,
    and for a trainer, [own rows, size] and [size, columns].
    """

    trainers: int
    part: torch.Tensor
    steps: int
    interval: int
    max_age: int
    size: int
    mixes: Sequence[torch.Tensor]


def run_role(
    answer: Callable[..., Any], rank: int, world_size: int, role: Role
) -> dict[str, Any] | None:
    """Call the answer in this rank's role; return its part of the last weights, and its calls."""
    trainers, part, steps, every, most, size, mixes = role
    batches: list[int] = []
    ages: list[int] = []

    def generate(columns: torch.Tensor, batch: int) -> torch.Tensor:
        if not 0 <= batch < steps:
            raise ValueError(f"batch is {batch}; there are batches 0 to {steps - 1}")
        if columns.shape != part.shape:
            raise ValueError(
                f"generate takes this generator's columns, of shape {tuple(part.shape)}, "
                f"not {tuple(columns.shape)}"
            )
        batches.append(batch)
        return torch.tanh(mixes[batch] @ columns).mean(1)

    def learn(rows: torch.Tensor, samples: Sequence[torch.Tensor], age: int) -> torch.Tensor:
        shapes = [tuple(each.shape) for each in samples]
        if shapes != (wanted := [(size,)] * (world_size - trainers)):
            raise ValueError(f"the tensors in samples have the shapes {shapes}; expected: {wanted}")
        ages.append(int(age))
        mixed = sum((k + 1) * each for k, each in enumerate(samples))
        return rows - 0.1 / (1 + age) * (mixes[0] * mixed) @ mixes[1]

    got = answer(rank, trainers, part.clone(), steps, every, most, size, generate, learn)
    if got is None:
        return None
    called = {"age of each batch": ages} if rank < trainers else {"batches": batches}
    return called | {
        "part": got.clone() if isinstance(got, torch.Tensor) else f"a {type(got).__name__}"
    }
