"""Each rank sends before it receives: gloo keeps nothing for later."""

import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    other = 1 - rank
    dist.send(torch.ones(1), dst=other)
    x = torch.zeros(1)
    dist.recv(x, src=other)
    return x
