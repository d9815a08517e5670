"""The functional all_gather_tensor and reduce_scatter_tensor."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol


def main(rank, world_size):
    x = torch.tensor([[rank, rank + 0.5]])
    every = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
    part = funcol.reduce_scatter_tensor(torch.arange(4.0), "sum", 0, dist.group.WORLD)
    return funcol.wait_tensor(every), funcol.wait_tensor(part)
