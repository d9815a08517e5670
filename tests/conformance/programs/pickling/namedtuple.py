"""A namedtuple of the cell is gathered."""

from collections import namedtuple

import torch.distributed as dist

Step = namedtuple("Step", "rank loss")


def main(rank, world_size):
    steps = [None] * world_size
    dist.all_gather_object(steps, Step(rank, rank / 2))
    return [(s.rank, s.loss) for s in steps], type(steps[0]) is Step
