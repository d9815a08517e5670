"""Rank 0 makes a temp directory and tells the others its name."""

import os
import tempfile
from pathlib import Path

import torch.distributed as dist


def main(rank, world_size):
    name = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(name, src=0)
    folder = Path(name[0])
    (folder / f"{rank}.txt").write_text(f"rank {rank}")
    dist.barrier()
    texts = [(folder / f"{r}.txt").read_text() for r in range(world_size)]
    dist.barrier()
    if rank == 0:
        for file in folder.iterdir():
            file.unlink()
        os.rmdir(folder)
    return texts
