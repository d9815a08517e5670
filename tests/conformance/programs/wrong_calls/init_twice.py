"""init_process_group where the group has been joined already."""

import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
