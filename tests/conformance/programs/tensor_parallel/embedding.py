"""An embedding table cut by rows."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module


def main(rank, world_size):
    torch.manual_seed(0)
    table = torch.nn.Embedding(10, 3)
    whole = table.weight.detach().clone()
    mesh = init_device_mesh("cpu", (world_size,))
    parallelize_module(table, mesh, RowwiseParallel(input_layouts=Replicate()))
    ids = torch.tensor([1, 9, 4])
    return torch.equal(table(ids), whole[ids])
