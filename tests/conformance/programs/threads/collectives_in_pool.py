"""Each thread has a group of its own and calls collectives in it."""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist


def main(rank, world_size):
    groups = [dist.new_group() for _ in range(3)]

    def work(i):
        x = torch.tensor([float(i + rank)])
        for _ in range(20):
            dist.all_reduce(x, op=dist.ReduceOp.MAX, group=groups[i])
        return x.item()

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(work, range(3)))
