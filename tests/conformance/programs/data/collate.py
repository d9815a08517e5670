"""A collate function of the cell in the worker, with dictionaries."""

import torch
from torch.utils.data import DataLoader


def together(items):
    return {"x": torch.tensor([i["x"] for i in items]), "n": len(items)}


def main(rank, world_size):
    items = [{"x": i + rank} for i in range(5)]
    return list(DataLoader(items, batch_size=2, collate_fn=together, num_workers=1))
