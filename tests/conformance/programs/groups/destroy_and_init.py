"""Leave the group and join another one, through a file."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    dist.destroy_process_group()
    file = Path(tempfile.gettempdir()) / "again"
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world_size)
    x = torch.ones(1)
    dist.all_reduce(x)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        file.unlink(missing_ok=True)
    return x
