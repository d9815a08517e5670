"""Leave the group first of all and join again, by the address in the environment."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    dist.destroy_process_group()
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    x = torch.tensor([1 + rank])
    dist.all_reduce(x)
    return x
