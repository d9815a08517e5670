"""Ranks start in one folder, and chdir moves one rank only."""

import os

import torch.distributed as dist


def main(rank, world_size):
    start = os.getcwd()
    if rank == 0:
        os.chdir("/")
    dist.barrier()
    seen = [None] * world_size
    dist.all_gather_object(seen, start)
    return len(set(seen)), os.getcwd() == "/"
