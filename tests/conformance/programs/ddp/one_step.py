"""DDP averages the gradients of two ranks."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(3, 2))
    x = torch.arange(6.0).reshape(2, 3) * (rank + 1)
    model(x).sum().backward()
    return model.module.weight.grad, model.module.bias.grad
