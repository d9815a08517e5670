"""A pool of threads computes; main sums with the other rank."""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist


def main(rank, world_size):
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: i * i + rank, range(10)))
    x = torch.tensor(parts)
    dist.all_reduce(x)
    return x
