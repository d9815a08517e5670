"""Barriers order what ranks write into one file."""

import os
import tempfile

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    path = os.path.join(tempfile.gettempdir(), "conformance-order.txt")
    for turn in range(world_size):
        if rank == turn:
            with open(path, "a") as file:
                file.write(f"rank {rank}\n")
        dist.barrier()
    with open(path) as file:
        text = file.read()
    dist.barrier()
    if rank == 0:
        os.unlink(path)
    return text
