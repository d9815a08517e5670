"""A backend with a typing mistake."""

import torch.distributed as dist

INIT = False
FAILS = "AssertionError"


def main(rank, world_size):
    dist.init_process_group("glow", rank=rank, world_size=world_size)
