"""DDP around a compiled module."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.compile(torch.nn.Linear(4, 2), backend="aot_eager"))
    model(torch.ones(2, 4) * (rank + 1)).sum().backward()
    return [p.grad for p in model.parameters()]
