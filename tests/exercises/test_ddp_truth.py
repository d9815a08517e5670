"""What notebook 09's checks hold to be right is what torch's DistributedDataParallel really does."""

from __future__ import annotations

import random

import pytest
import torch

from helpers.exercises.ddp_cases import bucketed_cases, hooked_cases
from helpers.exercises.ddp_programmes import train_wrapped
from helpers.exercises.model import Case
from helpers.ranks.launcher import launch

CASES = [case for draw in (hooked_cases, bucketed_cases) for case in draw(random.Random("DDP"))]


def torchs_own(model: torch.nn.Module, *bucket_bytes: int) -> torch.nn.Module:
    ddp = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    ddp.finish = lambda: None
    return ddp


def wrapped(rank: int, world_size: int, inputs: tuple[object, ...]) -> object:
    return train_wrapped(torchs_own, rank, world_size, *inputs)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
def test_torchs_own_wrapper_passes_on_every_rank(case: Case) -> None:
    run = launch(wrapped, case.world_size, per_rank=[(mine,) for mine in case.inputs])
    assert case.expected is not None
    for expected, value in zip(case.expected, run.values, strict=True):
        assert expected(value) == ""
