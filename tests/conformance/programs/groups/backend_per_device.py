"""Join with a backend named for the device: "cpu:gloo"."""

import torch
import torch.distributed as dist

INIT = False
LIKE = "torchrun"


def main(rank, world_size):
    dist.init_process_group("cpu:gloo")
    x = torch.ones(1)
    dist.all_reduce(x)
    name = dist.get_backend_config()
    dist.destroy_process_group()
    return x, name
