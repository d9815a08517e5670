"""new_subgroups cuts the world into machines of two ranks."""

import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    mine, every = dist.new_subgroups(group_size=2)
    x = torch.tensor([rank])
    dist.all_reduce(x, group=mine)
    return x, len(every), dist.get_process_group_ranks(mine)
