"""A timer sends after a second while main waits for it."""

import threading

import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.zeros(1)
    if rank == 0:
        timer = threading.Timer(1.0, lambda: dist.send(torch.ones(1), dst=1))
        timer.start()
        timer.join()
    else:
        dist.recv(x, src=0)
    return x
