"""reshard_after_forward=False keeps the whole weights until backward."""

import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    for layer in model:
        fully_shard(layer, reshard_after_forward=False)
    y = model(torch.ones(1, 2))
    between = type(next(model.parameters())).__name__
    y.sum().backward()
    return between, type(next(model.parameters())).__name__
