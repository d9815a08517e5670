"""distributed.checkpoint of plain tensors and numbers, one file for each rank that has data."""

import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


def main(rank, world_size):
    folder = Path(tempfile.gettempdir()) / "conformance-dcp-plain"
    dcp.save({"x": torch.arange(3.0), "step": 7}, checkpoint_id=folder)
    state = {"x": torch.zeros(3), "step": 0}
    dcp.load(state, checkpoint_id=folder)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)
    return state
