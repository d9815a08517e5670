"""A key is awaited of rank 0, which has returned; in new processes the store ends with it."""

import torch.distributed as dist

FAILS = "DistNetworkError"
DIFFERS = {
    "untraced": ("Deadlock", "a rank that has returned is named before its connections close"),
    "launch": ("Deadlock", "a rank that has returned is named before its connections close"),
    "ranks": ("Deadlock", "a rank that has returned is named before its connections close"),
}


def main(rank, world_size):
    if rank == 1:
        dist.distributed_c10d._get_default_store().get("set by nobody")
    return "done"
