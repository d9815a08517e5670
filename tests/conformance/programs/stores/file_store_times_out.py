"""A key of a FileStore that nobody sets: the error is a RuntimeError, not a DistStoreError."""

import os
import tempfile
from datetime import timedelta

import torch.distributed as dist

FAILS = "RuntimeError"
WORLD_SIZE = 1


def main(rank, world_size):
    with tempfile.TemporaryDirectory() as folder:
        store = dist.FileStore(os.path.join(folder, "store"), 1)
        store.set_timeout(timedelta(seconds=1))
        return store.get("nobody sets this")
