"""A FileStore on a path that all ranks know."""

import os
import tempfile

import torch.distributed as dist


def main(rank, world_size):
    path = os.path.join(tempfile.gettempdir(), "conformance-file-store")
    store = dist.FileStore(path, world_size)
    store.set(f"from {rank}", str(rank * 11))
    store.wait([f"from {r}" for r in range(world_size)])
    got = [store.get(f"from {r}") for r in range(world_size)]
    dist.barrier()
    if rank == 0 and os.path.exists(path):
        os.unlink(path)
    return got
