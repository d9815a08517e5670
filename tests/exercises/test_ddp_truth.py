"""What notebook 09's checks hold to be right is what torch's DistributedDataParallel really does."""

from __future__ import annotations

import pytest
import torch

from helpers.checks.case import Case
from helpers.checks.judge import Tried
from helpers.checks.registry import get
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import train_wrapped
from helpers.ranks.launcher import launch

CASES = [case for name in ("HookedDDP", "BucketedDDP") for case in get(name).draw()[::4]]


def torchs_own(model: torch.nn.Module, *bucket_bytes: int) -> torch.nn.Module:
    ddp = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    ddp.finish = lambda: None
    return ddp


def wrapped(rank: int, world_size: int, inputs: tuple[object, ...]) -> object:
    return train_wrapped(torchs_own, rank, world_size, *inputs)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=[f"{c.world_size} ranks, {c.label}" for c in CASES])
def test_torchs_own_wrapper_is_right_on_every_rank(case: Case) -> None:
    run = launch(wrapped, case.world_size, per_rank=[(mine,) for mine in case.given])
    assert not any(Tried(case, run).findings())
