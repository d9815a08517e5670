"""reduce_scatter_tensor: each rank keeps one part of the sum."""

import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    x = torch.arange(8.0) + rank
    mine = torch.empty(2)
    dist.reduce_scatter_tensor(mine, x)
    return mine
