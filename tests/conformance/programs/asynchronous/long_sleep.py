"""A rank sleeps in asyncio for two seconds; the other waits in a collective."""

import asyncio

import torch
import torch.distributed as dist


def main(rank, world_size):
    if rank == 1:
        asyncio.run(asyncio.sleep(2))
    x = torch.ones(1)
    dist.all_reduce(x)
    return x
