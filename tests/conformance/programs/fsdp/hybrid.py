"""A mesh of two dimensions: shards within pairs, replicas across them."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

WORLD_SIZE = 4


def main(rank, world_size):
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    model = torch.nn.Linear(4, 4)
    fully_shard(model, mesh=mesh)
    model(torch.ones(1, 4) * (rank + 1)).sum().backward()
    return model.weight.to_local().shape, model.weight.grad.full_tensor()[0]
