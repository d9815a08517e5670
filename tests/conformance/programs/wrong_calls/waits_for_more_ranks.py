"""A world_size larger than the ranks that there are."""

import torch.distributed as dist

INIT = False
FAILS = "hang"


def main(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size + 1)
