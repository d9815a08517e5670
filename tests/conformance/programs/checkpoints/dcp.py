"""distributed.checkpoint: each rank saves its shards, other values are loaded over."""

import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    folder = Path(tempfile.gettempdir()) / "conformance-dcp"
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    fully_shard(model)
    before = model.weight.full_tensor().clone()
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
    with torch.no_grad():
        model.weight.zero_()
    state = {"model": model.state_dict()}
    dcp.load(state, checkpoint_id=folder)
    same = torch.equal(model.weight.full_tensor(), before)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)
    return same
