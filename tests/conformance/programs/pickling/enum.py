"""A member of an enum of the cell is the same member on another rank."""

from enum import Enum

import torch.distributed as dist


class Color(Enum):
    RED = 1
    BLUE = 2


def main(rank, world_size):
    box = [Color.BLUE if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0] is Color.BLUE, box[0].name
