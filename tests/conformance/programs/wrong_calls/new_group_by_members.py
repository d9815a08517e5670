"""new_group called by its members only: it waits for the others."""

import torch.distributed as dist

FAILS = "hang"
WORLD_SIZE = 3


def main(rank, world_size):
    if rank < 2:
        dist.new_group([0, 1, 2])
    else:
        import threading

        threading.Event().wait()
