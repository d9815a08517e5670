"""Workers are seeded from the rank's own seed: each draws other numbers."""

import torch
from torch.utils.data import DataLoader, Dataset


class Draws(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.rand(1).item()


def main(rank, world_size):
    torch.manual_seed(rank)
    drawn = [x.item() for x in DataLoader(Draws(), num_workers=2)]
    return len(set(drawn)), [round(x, 6) for x in drawn]
