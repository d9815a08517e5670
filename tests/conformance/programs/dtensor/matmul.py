"""A product of DTensors: the placements of the result follow from those of its parts."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    a = distribute_tensor(torch.arange(8.0).reshape(2, 4), mesh, [Replicate()])
    b = distribute_tensor(torch.arange(8.0).reshape(4, 2), mesh, [Shard(1)])
    y = a @ b
    return str(y.placements), y.full_tensor()
