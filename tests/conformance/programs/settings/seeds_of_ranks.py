"""Only the function seeds: before it does, each rank has numbers of its own."""

import random

import torch
import torch.distributed as dist


def main(rank, world_size):
    drawn = [None] * world_size
    dist.all_gather_object(drawn, (random.random(), torch.rand(1).item()))
    random.seed(rank)
    torch.manual_seed(rank)
    return len(set(drawn)), random.random(), torch.rand(1)
