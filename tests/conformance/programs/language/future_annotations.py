"""A programme that begins with a future import."""

from __future__ import annotations

import torch


def total(x: Tensor | None) -> Missing:
    return 0 if x is None else x.sum().item()


def main(rank, world_size):
    return total(torch.ones(rank + 1)), total(None), total.__annotations__
