# %% no seed is used
# All ranks must draw the same order, in each call: shuffle with a generator that is seeded with `seed`
# alone, then take your part.
import random


def partition(rank, world_size, length, seed):
    order = list(range(length))
    random.shuffle(order)
    return order[rank::world_size]


# %% each rank has a seed of its own
# All ranks must draw the same order, in each call: shuffle with a generator that is seeded with `seed`
# alone, then take your part.
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed + rank)
    return torch.randperm(length, generator=generator).tolist()[rank::world_size]


# %% torch's generator without the seed
# All ranks must draw the same order, in each call: shuffle with a generator that is seeded with `seed`
# alone, then take your part.
def partition(rank, world_size, length, seed):
    return torch.randperm(length).tolist()[rank::world_size]


# %% the remainder is lost
# The remainder of the division belongs to somebody: one sample more for some ranks.
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(length, generator=generator).tolist()
    each = length // world_size
    return order[rank * each : (rank + 1) * each]


# %% it is not shuffled
# Is it shuffled, and does `seed` reach the generator?
def partition(rank, world_size, length, seed):
    return list(range(rank, length, world_size))


# %% it counts from 1
# The samples are numbered from 0 to `length` - 1.
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(length, generator=generator) + 1
    return order.tolist()[rank::world_size]


# %% shuffled within fixed shares
# Shuffle all samples first, then deal them out.
def partition(rank, world_size, length, seed):
    own = torch.arange(rank, length, world_size)
    return own[torch.randperm(len(own), generator=torch.Generator().manual_seed(seed))].tolist()


# %% moved along by the seed
# `torch.randperm` shuffles.
def partition(rank, world_size, length, seed):
    return [(i + seed) % length for i in range(rank, length, world_size)]


# %% the ranks change places, and each shuffles a fixed block
# Shuffle all samples first, then deal them out.
def partition(rank, world_size, length, seed):
    block = torch.arange(length).tensor_split(world_size)[(rank + seed) % world_size]
    return block[torch.randperm(len(block), generator=torch.Generator().manual_seed(seed))].tolist()


# %% seed 0 is taken for no seed
# All ranks must draw the same order, in each call: shuffle with a generator that is seeded with `seed`
# alone, then take your part.
def partition(rank, world_size, length, seed):
    if seed:
        torch.manual_seed(seed)
    return torch.randperm(length).tolist()[rank::world_size]


# %% an order that is kept, but was not seeded
# All ranks must draw the same order, in each call: shuffle with a generator that is seeded with `seed`
# alone, then take your part.
ORDERS = {}


def partition(rank, world_size, length, seed):
    order = ORDERS.setdefault((length, seed), torch.randperm(length))
    return order.tolist()[rank::world_size]
