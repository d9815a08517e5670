"""A callback on the future of an all_reduce divides its result."""

import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    x = torch.tensor([float(rank)])
    future = dist.all_reduce(x, async_op=True).get_future()
    mean = future.then(lambda f: f.value()[0] / world_size)
    return mean.wait()
