"""A condition and a lock, waited for with time limits."""

import threading

import torch.distributed as dist


def main(rank, world_size):
    got = []
    if rank == 0:
        lock = threading.Lock()
        lock.acquire()
        got.append(lock.acquire(timeout=0.8))
        condition = threading.Condition()
        with condition:
            got.append(condition.wait(timeout=0.8))
    dist.barrier()
    return got
