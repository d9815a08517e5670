"""A rank awaits a future that nothing of the programme sets; the other waits for that rank."""

import asyncio

import torch
import torch.distributed as dist

FAILS = "hang"


async def waits():
    await asyncio.get_running_loop().create_future()


def main(rank, world_size):
    if rank == 0:
        asyncio.run(waits())
    dist.all_reduce(torch.ones(1))
