"""monitored_barrier names the rank that did not come."""

from datetime import timedelta

import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    if rank == 1:
        import time

        time.sleep(4)
        return
    dist.monitored_barrier(timeout=timedelta(seconds=1))
