"""A loss that is NaN on one rank only makes the gradient NaN on all."""

import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2, bias=False)
    fully_shard(model)
    x = torch.full((1, 2), float("nan") if rank == 1 else 1.0)
    model(x).sum().backward()
    return bool(model.weight.grad.to_local().isnan().all())
