"""Event.wait with a time limit, while the other rank waits in a collective."""

import threading

import torch.distributed as dist


def main(rank, world_size):
    came = None
    if rank == 1:
        came = threading.Event().wait(1.5)
    dist.barrier()
    return came
