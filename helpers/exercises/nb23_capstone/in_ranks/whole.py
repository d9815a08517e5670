"""Gather DTensors whole, without torch's hint that two gathers could be one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch.distributed.tensor import DTensor


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """Return the full tensor of a tensor or DTensor. All ranks must call this."""
    if not isinstance(tensor, DTensor):
        return tensor
    with _without_hints():
        return tensor.full_tensor()


def copy_whole(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """Copy tensors, which may be DTensors, into one vector. All ranks must call this."""
    return torch.cat([whole(t).detach().flatten().clone() for t in tensors])


@contextmanager
def _without_hints() -> Iterator[None]:
    logger = logging.getLogger("torch.distributed.tensor._redistribute")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
