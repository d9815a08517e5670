# %% wrong: it is not shuffled | wrong | says: Is it shuffled


# %% wrong: only the own shard is shuffled, blocks overlap at the ends | wrong | says: into the same shares


# %% wrong: it counts from 1 | wrong | says: numbered from 0 to


# %% wrong: shuffled within fixed shares | wrong | says: Shuffle all samples first


# %% wrong: moved along by the seed | wrong | says: not shuffled


# %% right: numpy, and the samples dealt one by one
import numpy as np


def partition(rank, world_size, length, seed):
    order = np.random.default_rng(seed).permutation(length)
    return [int(sample) for place, sample in enumerate(order) if place % world_size == rank]


# %% wrong: the ranks change places, and each shuffles a fixed block | wrong | says: Shuffle all samples first
def partition(rank, world_size, length, seed):
    block = torch.arange(length).tensor_split(world_size)[(rank + seed) % world_size]
    return block[torch.randperm(len(block), generator=torch.Generator().manual_seed(seed))].tolist()


# %% wrong: each share is sorted | wrong | says: ascending order
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    return sorted(torch.randperm(length, generator=generator)[rank::world_size].tolist())


# %% wrong: seed 0 is taken for no seed | wrong | says: seeded with `seed` alone
def partition(rank, world_size, length, seed):
    if seed:
        torch.manual_seed(seed)
    return torch.randperm(length).tolist()[rank::world_size]


# %% wrong: an order that is kept, but was not seeded | wrong | says: seeded with `seed` alone
ORDERS = {}


def partition(rank, world_size, length, seed):
    order = ORDERS.setdefault((length, seed), torch.randperm(length))
    return order.tolist()[rank::world_size]
