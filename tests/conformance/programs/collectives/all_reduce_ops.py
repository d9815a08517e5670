"""Every reduction that gloo knows, on whole numbers."""

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

WORLD_SIZE = 3


def main(rank, world_size):
    ops = {"sum": ReduceOp.SUM, "max": ReduceOp.MAX, "min": ReduceOp.MIN, "prod": ReduceOp.PRODUCT}
    ops |= {"band": ReduceOp.BAND, "bor": ReduceOp.BOR, "bxor": ReduceOp.BXOR}
    got = {}
    for name, op in ops.items():
        x = torch.tensor([rank + 2, 7 - rank])
        dist.all_reduce(x, op=op)
        got[name] = x.tolist()
    return got
