"""all_gather into a list that is too short."""

import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    dist.all_gather([torch.zeros(1)], torch.ones(1))
