"""A scheduler of learning rates over a ZeroRedundancyOptimizer."""

import torch
from torch.distributed.optim import ZeroRedundancyOptimizer


def main(rank, world_size):
    model = torch.nn.Linear(2, 1)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    rates = []
    for _ in range(5):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        scheduler.step()
        rates.append(scheduler.get_last_lr()[0])
    return rates
