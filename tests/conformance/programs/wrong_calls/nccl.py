"""NCCL where there is no GPU, or none that is asked for."""

import torch.distributed as dist

INIT = False
FAILS = "RuntimeError"


def main(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
