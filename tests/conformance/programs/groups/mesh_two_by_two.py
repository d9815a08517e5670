"""A mesh of two by two: sums along each dimension."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

WORLD_SIZE = 4


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    by_dim = {}
    for name in ("dp", "tp"):
        x = torch.tensor([10.0**rank])
        dist.all_reduce(x, group=mesh.get_group(name))
        by_dim[name] = x.item()
    return by_dim, mesh.get_coordinate(), mesh["dp"].get_local_rank()
