"""Ranks with unequal numbers of batches and no join: the longer one is left alone."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "left"


def main(rank, world_size):
    model = DDP(torch.nn.Linear(1, 1))
    for i in range(3 + rank):
        model(torch.tensor([[float(i)]])).sum().backward()
    return "done"
