# %% collate | A collate function of the cell in the worker, with dictionaries.
import torch
from torch.utils.data import DataLoader


def together(items):
    return {"x": torch.tensor([i["x"] for i in items]), "n": len(items)}


def main(rank, world_size):
    items = [{"x": i + rank} for i in range(5)]
    return list(DataLoader(items, batch_size=2, collate_fn=together, num_workers=1))


# %% distributed_sampler | DistributedSampler: the ranks' padded parts are disjoint and cover everything.
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WORLD_SIZE = 3


def main(rank, world_size):
    data = TensorDataset(torch.arange(10))
    loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data, shuffle=False))
    mine = [x.item() for (batch,) in loader for x in batch]
    every = [None] * world_size
    dist.all_gather_object(every, mine)
    return mine, sorted(sum(every, []))


# %% persistent_workers | Persistent workers, used for a second epoch.
import torch
from torch.utils.data import DataLoader, TensorDataset


def main(rank, world_size):
    data = TensorDataset(torch.arange(6) * (rank + 1))
    loader = DataLoader(data, batch_size=3, num_workers=1, persistent_workers=True)
    return [sum(x.sum().item() for (x,) in loader) for epoch in range(2)]


# %% random_split | random_split with a seeded generator.
import torch
from torch.utils.data import random_split


def main(rank, world_size):
    parts = random_split(range(10), [7, 3], generator=torch.Generator().manual_seed(42))
    return [list(part) for part in parts]


# %% set_epoch | set_epoch changes the order; without it, all epochs have the same order.
from torch.utils.data.distributed import DistributedSampler


def main(rank, world_size):
    sampler = DistributedSampler(range(12), seed=3)
    first, again = list(sampler), list(sampler)
    sampler.set_epoch(1)
    return first, first == again, list(sampler) == first


# %% shuffle_unseeded | Shuffled without a seed: the ranks' orders differ.
import torch.distributed as dist
from torch.utils.data import DataLoader


def main(rank, world_size):
    order = [x.item() for x in DataLoader(range(40), shuffle=True)]
    orders = [None] * world_size
    dist.all_gather_object(orders, order)
    return orders[0] != orders[1]


# %% shuffle_with_generator | Shuffled with a seeded generator: the same order on all ranks.
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


def main(rank, world_size):
    g = torch.Generator().manual_seed(5)
    order = [x.item() for x in DataLoader(range(8), shuffle=True, generator=g)]
    orders = [None] * world_size
    dist.all_gather_object(orders, order)
    return orders[0] == orders[1], order


# %% worker_error | An item that raises in a worker raises on the rank.
from torch.utils.data import DataLoader, Dataset

FAILS = "KeyError"


class Broken(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return {0: 0, 1: 1}[i]


def main(rank, world_size):
    return list(DataLoader(Broken(), num_workers=1))


# %% worker_info | An iterable dataset shares its numbers among its workers.
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Numbers(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, 8, info.num_workers))


def main(rank, world_size):
    loader = DataLoader(Numbers(), batch_size=None, num_workers=2)
    return sorted(loader)


# %% worker_seeds | Workers are seeded from the rank's seed: each draws different numbers.
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


# %% workers | A DataLoader with two worker processes on each rank.
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
