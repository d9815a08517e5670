"""Join by init_process_group("gloo") alone: torchrun has set all that it reads."""

import torch
import torch.distributed as dist

INIT = False
LIKE = "torchrun"


def main(rank, world_size):
    dist.init_process_group("gloo")
    x = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x
