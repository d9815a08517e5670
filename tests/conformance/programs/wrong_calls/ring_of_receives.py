"""A ring in which everybody receives first."""

import torch
import torch.distributed as dist

FAILS = "hang"
WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.zeros(1)
    dist.recv(x, src=(rank - 1) % world_size)
    dist.send(x, dst=(rank + 1) % world_size)
