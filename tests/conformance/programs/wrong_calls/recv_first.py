"""Each rank receives before it sends: none of them goes on."""

import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    other = 1 - rank
    x = torch.zeros(1)
    dist.recv(x, src=other)
    dist.send(torch.ones(1), dst=other)
    return x
