"""local_map runs a plain function on the local parts."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.experimental import local_map


def double(x):
    return x * 2 + x.shape[0]


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    d = distribute_tensor(torch.arange(6.0), mesh, [Shard(0)])
    mapped = local_map(double, out_placements=[Shard(0)], device_mesh=mesh)
    return mapped(d).full_tensor()
