"""A KeyError in the callback of a future."""

import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    future = dist.all_reduce(torch.ones(1), async_op=True).get_future()

    def look(f):
        return {}["nothing"]

    return future.then(look).wait()
