"""A key of the group's own store that nobody sets: the error is a DistStoreError, after the timeout."""

import time
from datetime import timedelta

import torch.distributed as dist


def main(rank, world_size):
    store = dist.PrefixStore("mine", dist.distributed_c10d._get_default_store())
    ends = []
    for wait in (
        lambda: store.wait(["no key"], timedelta(seconds=0.5)),
        lambda: store.get("no key"),
    ):
        began = time.monotonic()
        store.set_timeout(timedelta(seconds=0.5))
        try:
            wait()
        except Exception as error:
            words = str(error).split(",")[0]
            ends.append((type(error).__name__, words, time.monotonic() - began < 1.4))
    return ends
