"""An item that raises in a worker raises on the rank."""

from torch.utils.data import DataLoader, Dataset

FAILS = "KeyError"


class Broken(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return {0: 0, 1: 1}[i]


def main(rank, world_size):
    return list(DataLoader(Broken(), num_workers=1))
