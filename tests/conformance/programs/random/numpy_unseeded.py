"""Ranks that set no seed draw different numbers from numpy."""

import numpy as np
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    drawn = [None] * world_size
    dist.all_gather_object(drawn, (np.random.rand(), np.random.default_rng().random()))
    return [len({d[i] for d in drawn}) for i in range(2)]
