"""Run answers of 22.4: the loss of trainers on samples generated with other weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import equal


class Batch(NamedTuple):
    """A trainer's samples: log-probabilities [samples, length], and a mask of the tokens that count."""

    new: torch.Tensor
    old: torch.Tensor
    sampled: torch.Tensor
    advantages: torch.Tensor
    mask: torch.Tensor
    low: float
    high: float
    cap: float


def run_policy_loss(
    answer: Callable[..., Any], rank: int, world_size: int, trainers: int, batch: Batch | None
) -> dict[str, Any] | None:
    """Call the answer on a trainer, and run backward; a generator only helps to create their group."""
    group = dist.new_group(list(range(trainers)))
    if batch is None:
        return {}
    tensors, limits = batch[:5], batch[5:]
    new = batch.new.clone().requires_grad_()
    given = [new, *(x.clone() for x in tensors[1:])]
    loss = answer(*given, *limits, group)
    if loss is None:
        return None
    if not isinstance(loss, torch.Tensor):
        said = f"a {type(loss).__name__} came back, not a tensor"
        return {"inputs": said, "gradient of new": said, "loss": said}
    changed = [
        name
        for name, own, first in zip(Batch._fields, given, tensors, strict=False)
        if not equal(own.detach().nan_to_num(7.0), first.nan_to_num(7.0))
    ]
    number = loss.detach().to(new.dtype, copy=True)
    if loss.numel() == 1:
        loss.backward()
        number = number.reshape(())  # a dimension of size 1 does no harm
    return {
        "inputs": f"`{changed[0]}` has changed" if changed else "",
        "loss": number,
        "gradient of new": None if new.grad is None else new.grad.clone(),
    }
