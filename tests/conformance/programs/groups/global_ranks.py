"""Ranks in a group and in the world are translated both ways."""

import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    group = dist.new_group([3, 1])
    there = [dist.get_global_rank(group, i) for i in range(2)]
    return there, dist.get_group_rank(group, 3), dist.get_group_rank(group, 1)
