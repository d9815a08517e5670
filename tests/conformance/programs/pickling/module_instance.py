"""A module of a class of the cell is sent as an object."""

import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = torch.nn.Parameter(torch.full((n,), 3.0))


def main(rank, world_size):
    box = [Net(2) if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0].w, type(box[0]).__name__
