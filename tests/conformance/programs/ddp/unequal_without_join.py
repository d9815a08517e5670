"""Ranks with unequal numbers of batches and no join: the longer one is left alone."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "RuntimeError"
DIFFERS = {
    "untraced": ("Deadlock", "a rank that has returned is named before its connections close"),
    "launch": ("Deadlock", "a rank that has returned is named before its connections close"),
    "ranks": ("Deadlock", "a rank that has returned is named before its connections close"),
}


def main(rank, world_size):
    model = DDP(torch.nn.Linear(1, 1))
    for i in range(3 + rank):
        model(torch.tensor([[float(i)]])).sum().backward()
    return "done"
