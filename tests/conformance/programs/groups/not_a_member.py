"""A rank outside of a group has no rank in it, and its calls there do nothing."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    group = dist.new_group([0, 2])
    x = torch.tensor([1.0 + rank])
    if rank != 1:
        dist.all_reduce(x, group=group)
    return x, dist.get_rank(group)
