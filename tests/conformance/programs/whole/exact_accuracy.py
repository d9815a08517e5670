"""Accuracy over ranks with unequal numbers of samples: sums are reduced, not means."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    right = torch.arange(10) % 3 == 0
    mine = right[rank::world_size]
    counts = torch.tensor([mine.sum().item(), len(mine)])
    dist.all_reduce(counts)
    return counts[0].item() / counts[1].item(), len(mine)
