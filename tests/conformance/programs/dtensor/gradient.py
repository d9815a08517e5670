"""backward through sharded tensors."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    w = torch.nn.Parameter(distribute_tensor(torch.arange(6.0).reshape(2, 3), mesh, [Shard(0)]))
    w.pow(2).sum().backward()
    return w.grad.full_tensor()
