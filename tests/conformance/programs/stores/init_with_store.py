"""Join the group with a store of one's own."""

import os
import tempfile

import torch
import torch.distributed as dist

INIT = False


def main(rank, world_size):
    path = os.path.join(tempfile.gettempdir(), "conformance-init-store")
    store = dist.FileStore(path, world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    x = torch.tensor([rank + 1])
    dist.all_reduce(x, op=dist.ReduceOp.PRODUCT)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0 and os.path.exists(path):
        os.unlink(path)
    return x
