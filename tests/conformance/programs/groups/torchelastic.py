"""A rank can tell that torchrun started it."""

import torch.distributed as dist

LIKE = "torchrun"


def main(rank, world_size):
    return dist.is_torchelastic_launched()
