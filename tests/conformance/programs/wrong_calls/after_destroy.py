"""A collective after the group was destroyed."""

import torch
import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    dist.destroy_process_group()
    dist.all_reduce(torch.ones(1))
