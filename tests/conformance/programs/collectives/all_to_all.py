"""all_to_all_single with parts of different sizes."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    give = [rank + 1] * world_size
    take = [r + 1 for r in range(world_size)]
    x = torch.arange(sum(give)) + 100 * rank
    out = torch.empty(sum(take), dtype=torch.int64)
    dist.all_to_all_single(out, x, take, give)
    return out
