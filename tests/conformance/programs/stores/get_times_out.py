"""A key that nobody sets: get ends with an error after its timeout."""

from datetime import timedelta

import torch.distributed as dist

FAILS = "DistStoreError"
WORLD_SIZE = 1


def main(rank, world_size):
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=1))
    return store.get("nobody sets this")
