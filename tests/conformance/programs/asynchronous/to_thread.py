"""A blocking receive in asyncio.to_thread, beside a task that counts."""

import asyncio

import torch
import torch.distributed as dist


async def receive(x):
    await asyncio.to_thread(dist.recv, x, 0)
    return x


def main(rank, world_size):
    if rank == 0:
        dist.send(torch.tensor([5.0]), dst=1)
        return None
    return asyncio.run(receive(torch.zeros(1)))
