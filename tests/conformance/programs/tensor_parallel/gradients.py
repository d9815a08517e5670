"""Gradients of the parts are the parts of the gradient."""

import copy

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def main(rank, world_size):
    torch.manual_seed(0)
    whole = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    mesh = init_device_mesh("cpu", (world_size,))
    model = parallelize_module(
        copy.deepcopy(whole), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}
    )
    for net in (whole, model):
        net(torch.ones(2, 3)).sum().backward()
    pairs = zip(whole.parameters(), model.parameters(), strict=True)
    return [torch.allclose(p.grad, q.grad.full_tensor(), atol=1e-5) for p, q in pairs]
