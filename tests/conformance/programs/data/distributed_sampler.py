"""DistributedSampler: the ranks' parts are apart and cover everything, with padding."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WORLD_SIZE = 3


def main(rank, world_size):
    data = TensorDataset(torch.arange(10))
    loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data, shuffle=False))
    mine = [x.item() for (batch,) in loader for x in batch]
    every = [None] * world_size
    dist.all_gather_object(every, mine)
    return mine, sorted(sum(every, []))
