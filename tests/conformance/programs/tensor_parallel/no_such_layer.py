"""A plan that names a layer which is not there: torch warns and goes on."""

import warnings

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parallelize_module(model, mesh, {"layer7": ColwiseParallel()})
    return len(caught) > 0, type(model[0].weight).__name__
