"""init_process_group with a rank that is out of range: it waits for those before it."""

import torch.distributed as dist

INIT = False
FAILS = "hang"


def main(rank, world_size):
    dist.init_process_group("gloo", rank=rank + world_size, world_size=world_size)
