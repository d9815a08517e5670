"""The functional all_to_all_single with equal parts."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.arange(3.0) + 10 * rank
    y = funcol.all_to_all_single(x, [1, 1, 1], [1, 1, 1], dist.group.WORLD)
    return y + 0
