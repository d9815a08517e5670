"""Columns, then rows: a two-layer network cut over ranks gives what the whole one gives."""

import copy

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def main(rank, world_size):
    torch.manual_seed(0)
    whole = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    mesh = init_device_mesh("cpu", (world_size,))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = parallelize_module(copy.deepcopy(whole), mesh, plan)
    x = torch.arange(8.0).reshape(2, 4)
    return torch.allclose(model(x), whole(x), atol=1e-5), list(model[0].weight.to_local().shape)
