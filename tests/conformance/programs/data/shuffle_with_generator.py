"""Shuffled with a generator of one's own: the same order on all ranks."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


def main(rank, world_size):
    g = torch.Generator().manual_seed(5)
    order = [x.item() for x in DataLoader(range(8), shuffle=True, generator=g)]
    orders = [None] * world_size
    dist.all_gather_object(orders, order)
    return orders[0] == orders[1], order
