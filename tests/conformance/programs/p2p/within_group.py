"""In a group of its own a rank names its peer by group_dst and group_src."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    group = dist.new_group([1, 2])
    x = torch.tensor([float(rank)])
    if rank == 1:
        dist.send(x, group=group, group_dst=1)
    elif rank == 2:
        dist.recv(x, group=group, group_src=0)
    return x
