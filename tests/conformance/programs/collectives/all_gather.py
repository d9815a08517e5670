"""all_gather into a list, and into one tensor."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.tensor([rank + 0.25, rank + 0.5])
    boxes = [torch.empty(2) for _ in range(world_size)]
    dist.all_gather(boxes, x)
    flat = torch.empty(2 * world_size)
    dist.all_gather_into_tensor(flat, x)
    return torch.stack(boxes), flat
