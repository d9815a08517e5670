"""Two backward passes under one sum of gradients: no_sync keeps the first one local."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 1, bias=False))
    with model.no_sync():
        model(torch.tensor([[1.0, 0.0]]) * (rank + 1)).sum().backward()
    local = model.module.weight.grad.clone()
    model(torch.tensor([[0.0, 1.0]]) * (rank + 1)).sum().backward()
    return local, model.module.weight.grad
