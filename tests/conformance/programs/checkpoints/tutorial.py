"""Rank 0 saves in the temp directory, all ranks load from there, rank 0 removes the file."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(rank)
    model = DDP(torch.nn.Linear(2, 2))
    path = tempfile.gettempdir() + "/conformance-model.checkpoint"
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    dist.barrier()
    if rank == 0:
        os.remove(path)
    return sorted(model.state_dict())
