"""Ranks start with different weights: DDP hands rank 0's to all."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD_SIZE = 3


def main(rank, world_size):
    torch.manual_seed(rank)
    before = torch.nn.Linear(2, 2)
    first = before.weight[0, 0].item()
    model = DDP(before)
    return first == model.module.weight[0, 0].item(), model.module.weight
