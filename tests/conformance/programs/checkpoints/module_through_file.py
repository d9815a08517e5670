"""Rank 0 saves a module of a class of the cell, rank 1 loads it."""

import os
import tempfile

import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(3.0))


def main(rank, world_size):
    path = os.path.join(tempfile.gettempdir(), "conformance-net.pt")
    if rank == 0:
        torch.save(Net(), path)
    dist.barrier()
    net = torch.load(path, weights_only=False)
    dist.barrier()
    if rank == 0:
        os.unlink(path)
    return type(net).__name__, net.weight
