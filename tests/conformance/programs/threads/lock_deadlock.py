"""A rank locks a lock twice and waits for itself; the other one waits for the rank."""

import threading

import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    lock = threading.Lock()
    if rank == 0:
        lock.acquire()
        lock.acquire()
    dist.barrier()
