"""From rows to columns, from partial sums to a whole."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    part = DTensor.from_local(torch.full((2, 2), rank + 1.0), mesh, [Partial()])
    whole = part.redistribute(placements=[Replicate()])
    columns = whole.redistribute(placements=[Shard(1)])
    return whole.to_local(), columns.to_local()
