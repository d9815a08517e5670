"""Both processes say that they are rank 0: the group waits for rank 1."""

from pathlib import Path

import torch.distributed as dist

INIT = False
FAILS = "hang"


def main(rank, world_size):
    place = Path("joined").absolute()
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=0, world_size=world_size)
