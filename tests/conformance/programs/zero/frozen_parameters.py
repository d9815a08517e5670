"""A frozen parameter beside trained ones, in groups with rates of their own."""

import torch
from torch.distributed.optim import ZeroRedundancyOptimizer


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    model[0].weight.requires_grad_(False)
    groups = [
        {"params": [model[0].bias], "lr": 0.1},
        {"params": list(model[1].parameters()), "lr": 0.5},
    ]
    optimizer = ZeroRedundancyOptimizer(groups, torch.optim.SGD, lr=1.0)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return [p.detach() for p in model.parameters()]
