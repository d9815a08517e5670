"""Pairs of neighbors are groups of their own; every rank makes all of them."""

import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    pairs = [dist.new_group([i, i + 1]) for i in range(0, world_size, 2)]
    mine = pairs[rank // 2]
    x = torch.tensor([10**rank])
    dist.all_reduce(x, group=mine)
    return x, dist.get_rank(mine), dist.get_world_size(mine)
