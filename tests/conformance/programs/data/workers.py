"""A DataLoader with two worker processes on each rank."""

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.tensor(i * i)


def main(rank, world_size):
    loader = DataLoader(Squares(), batch_size=4, num_workers=2)
    return [batch.sum().item() + rank for batch in loader]
