"""Random inputs for cases, from the one generator that a case's seed has made."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from helpers.data.digits import small_digits

DTYPES = (torch.float32, torch.float64, torch.int64)


def tensor(rng: random.Random, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Draw a tensor of small whole numbers: sums of them are exact in every order and dtype.

    No two neighbours are alike, so that a shifted or reversed answer differs.
    """
    generator = torch.Generator().manual_seed(rng.randrange(1 << 31))
    values = torch.randint(-9, 10, shape, generator=generator)
    flat = values.reshape(-1)
    for i in range(1, flat.numel()):
        if flat[i] == flat[i - 1]:
            flat[i] += 10
    return values.to(dtype)


def tensors(
    rng: random.Random, count: int, *shape: int, dtype: torch.dtype = torch.float32
) -> list[torch.Tensor]:
    """Draw one tensor for each of `count` ranks, no two of them equal."""
    drawn = [tensor(rng, *shape, dtype=dtype) for _ in range(count)]
    return [t + 20 * r for r, t in enumerate(drawn)] if drawn else []


def digits(
    rng: random.Random, count: int, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw `count` different handwritten digits: images (count, 64) and labels (count,)."""
    x, y = small_digits()
    chosen = torch.tensor(rng.sample(range(len(x)), count))
    return x[chosen].to(dtype), y[chosen]


def describe(world_size: int, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> str:
    """Write a case's label: `3 ranks, 5 elements, float64`."""
    ranks = f"{world_size} rank{'s' * (world_size != 1)}"
    size = "x".join(map(str, shape))
    elements = f"{size} element{'s' * (size != '1')}"
    name = str(dtype).removeprefix("torch.")
    return f"{ranks}, {elements}" + ("" if dtype == torch.float32 else f", {name}")
