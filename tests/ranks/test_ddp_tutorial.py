"""PyTorch's DDP tutorial, unchanged: the group is destroyed while a local variable holds the model."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from helpers import launch


def demo_basic(rank: int, world_size: int) -> None:
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DistributedDataParallel(torch.nn.Linear(10, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    torch.nn.functional.mse_loss(model(torch.randn(20, 10)), torch.randn(20, 5)).backward()
    optimizer.step()
    dist.destroy_process_group()


@pytest.mark.parametrize("times", [3, pytest.param(100, marks=pytest.mark.soak)])
def test_ddp_tutorial_runs_to_completion(times: int) -> None:
    for _ in range(times):
        launch(demo_basic, 2, init=False, timeout=20)
