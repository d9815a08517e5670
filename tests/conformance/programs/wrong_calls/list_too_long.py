"""all_gather_object into a list that is too long: places stay empty or it fails."""

import torch.distributed as dist


def main(rank, world_size):
    box = [None] * (world_size + 1)
    try:
        dist.all_gather_object(box, rank)
    except Exception as error:
        return type(error).__name__
    return box
