"""Local steps with an average every second one (periodic model averaging)."""

import torch
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager


def main(rank, world_size):
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    averager = PeriodicModelAverager(period=2, warmup_steps=0)
    seen = []
    for step in range(4):
        model.weight.grad = torch.ones(1, 1)
        with torch.no_grad():
            model.weight += (rank + 1) * (step + 1)
        averager.average_parameters(model.parameters())
        seen.append(model.weight.item())
    return seen
