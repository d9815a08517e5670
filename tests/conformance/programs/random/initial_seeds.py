"""torch's initial seed differs from rank to rank."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    seeds = [None] * world_size
    dist.all_gather_object(seeds, torch.initial_seed())
    return len(set(seeds))
