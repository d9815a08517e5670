"""Every rank waits for a key of the group's own store, and none sets it."""

import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    return dist.distributed_c10d._get_default_store().get("go")
