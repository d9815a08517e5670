"""Functions that ranks call for test_ddp_truth, in a separate file so that ranks need not import the test."""

from __future__ import annotations

import torch

from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import train_wrapped


def torchs_own(model: torch.nn.Module, *bucket_bytes: int) -> torch.nn.Module:
    ddp = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    ddp.finish = lambda: None
    return ddp


def wrapped(rank: int, world_size: int, inputs: tuple[object, ...]) -> object:
    return train_wrapped(torchs_own, rank, world_size, *inputs)  # type: ignore[arg-type]
