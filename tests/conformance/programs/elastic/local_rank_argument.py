"""A script that reads its rank from the environment and not from its arguments."""

import os

import torch
import torch.distributed as dist

LIKE = "torchrun"
WORLD_SIZE = 3


def train():
    local_rank = int(os.environ["LOCAL_RANK"])
    x = torch.tensor([local_rank * int(os.environ["WORLD_SIZE"])])
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    return x


def main(rank, world_size):
    return train()
