"""A rank sends SIGUSR1 to the other, whose pid it was told."""

import os
import signal
import time

import torch.distributed as dist


def main(rank, world_size):
    got = []
    signal.signal(signal.SIGUSR1, lambda number, frame: got.append("usr1"))
    pids = [None] * world_size
    dist.all_gather_object(pids, os.getpid())
    if rank == 0:
        os.kill(pids[1], signal.SIGUSR1)
    deadline = time.monotonic() + 10
    while rank == 1 and not got and time.monotonic() < deadline:
        time.sleep(0.01)
    dist.barrier()
    return got
