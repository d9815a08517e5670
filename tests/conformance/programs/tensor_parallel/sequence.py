"""Sequence parallel: a LayerNorm works on a part of the sequence."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import (
    PrepareModuleInput,
    SequenceParallel,
    parallelize_module,
)


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    model = torch.nn.Sequential(torch.nn.LayerNorm(4))
    enter = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Shard(1))
    parallelize_module(model, mesh, {"": enter, "0": SequenceParallel()})
    y = model(torch.arange(8.0).reshape(1, 2, 4) + 8 * rank)
    return list(y.shape), list(y.to_local().shape)
