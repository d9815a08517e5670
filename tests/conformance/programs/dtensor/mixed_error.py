"""A DTensor and a plain tensor in one product: an error that says so."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

FAILS = "RuntimeError"


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    d = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0)])
    return (d * torch.ones(4, 2)).to_local()
