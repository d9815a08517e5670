"""A tensor cut by rows, and put together again."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

WORLD_SIZE = 3


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    x = torch.arange(14.0).reshape(7, 2)
    d = distribute_tensor(x, mesh, [Shard(0)])
    return d.to_local(), torch.equal(d.full_tensor(), x)
