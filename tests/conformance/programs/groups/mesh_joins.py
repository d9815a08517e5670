"""init_device_mesh joins the group itself where nobody has."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

INIT = False
LIKE = "torchrun"


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    x = torch.ones(2)
    dist.all_reduce(x, group=mesh.get_group())
    return x, dist.get_backend()
