"""main returns a DTensor as it is."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

DIFFERS = {
    "untraced": (
        "CannotReturn",
        "only plain data comes back from a rank; the error names to_local",
    ),
    "launch": ("CannotReturn", "only plain data comes back from a rank; the error names to_local"),
    "ranks": ([None, None], "a cell's value that is no plain data is printed on the rank"),
}


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    return distribute_tensor(torch.ones(2), mesh, [Shard(0)])
