"""Ranks build models of different sizes: DDP refuses them."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "RuntimeError"


def main(rank, world_size):
    DDP(torch.nn.Linear(2, 2 + rank))
