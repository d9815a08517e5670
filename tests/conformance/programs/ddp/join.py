"""Ranks with unequal numbers of batches end well under join."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = 0
    with model.join():
        for i in range(3 + 2 * rank):
            optimizer.zero_grad()
            model(torch.tensor([[float(i)]])).sum().backward()
            optimizer.step()
            steps += 1
    return steps, model.module.weight
