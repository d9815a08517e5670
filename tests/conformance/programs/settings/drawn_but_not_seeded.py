"""Numbers drawn at the top without a seed: each rank has its own."""

import random

import numpy as np
import torch
import torch.distributed as dist

SETS = True
first = torch.rand(1000), [random.random() for _ in range(1000)], np.random.rand(1000)


def main(rank, world_size):
    mine = torch.rand(1).item(), random.random(), np.random.rand()
    all_of_them = [None] * world_size
    dist.all_gather_object(all_of_them, mine)
    return [len(set(of_one)) for of_one in zip(*all_of_them, strict=True)]
