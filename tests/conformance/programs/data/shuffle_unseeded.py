"""Shuffled without a seed: the ranks' orders differ."""

import torch.distributed as dist
from torch.utils.data import DataLoader


def main(rank, world_size):
    order = [x.item() for x in DataLoader(range(40), shuffle=True)]
    orders = [None] * world_size
    dist.all_gather_object(orders, order)
    return orders[0] != orders[1]
