# %% right: a seeded permutation, dealt out in strides
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(length, generator=generator).tolist()[rank::world_size]


# %% right: python's random, contiguous blocks
import random


def partition(rank, world_size, length, seed):
    order = list(range(length))
    random.Random(seed).shuffle(order)
    base, extra = divmod(length, world_size)
    start = rank * base + min(rank, extra)
    return order[start : start + base + (rank < extra)]


# %% right: torch's global seed, a tensor comes back
def partition(rank, world_size, length, seed):
    torch.manual_seed(seed)
    return torch.tensor_split(torch.randperm(length), world_size)[rank]


# %% wrong: the last rank takes the whole remainder | wrong | says: more than one apart
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(length, generator=generator).tolist()
    each = length // world_size
    end = length if rank == world_size - 1 else (rank + 1) * each
    return order[rank * each : end]


# %% wrong: rank 0 shuffles and broadcasts | forbidden call | says: none is needed
def partition(rank, world_size, length, seed):
    box = [torch.randperm(length, generator=torch.Generator().manual_seed(seed)).tolist()]
    dist.broadcast_object_list(box, src=0)
    return box[0][rank::world_size]


# %% wrong: only the own shard is shuffled, blocks overlap at the ends | wrong | says: into the same shares
def partition(rank, world_size, length, seed):
    each = -(-length // world_size)
    start = min(rank * each, max(0, length - each))
    order = torch.randperm(each, generator=torch.Generator().manual_seed(seed)).tolist()
    return [start + i for i in order if start + i < length]


# %% right: numpy, and the samples dealt one by one
import numpy as np


def partition(rank, world_size, length, seed):
    order = np.random.default_rng(seed).permutation(length)
    return [int(sample) for place, sample in enumerate(order) if place % world_size == rank]


# %% wrong: each share is sorted | wrong | says: ascending order
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    return sorted(torch.randperm(length, generator=generator)[rank::world_size].tolist())


# %% wrong: no seed is used | wrong | says: seeded with `seed`
import random


def partition(rank, world_size, length, seed):
    order = list(range(length))
    random.shuffle(order)
    return order[rank::world_size]


# %% wrong: each rank has a seed of its own | wrong | says: seeded with `seed`
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed + rank)
    return torch.randperm(length, generator=generator).tolist()[rank::world_size]


# %% wrong: torch's generator without the seed | wrong | says: seeded with `seed`
def partition(rank, world_size, length, seed):
    return torch.randperm(length).tolist()[rank::world_size]


# %% wrong: the remainder is lost | wrong | says: The remainder
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(length, generator=generator).tolist()
    each = length // world_size
    return order[rank * each : (rank + 1) * each]


# %% wrong: it is not shuffled | wrong | says: does not depend on
def partition(rank, world_size, length, seed):
    return list(range(rank, length, world_size))


# %% wrong: it counts from 1 | wrong | says: numbered from 0
def partition(rank, world_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(length, generator=generator) + 1
    return order.tolist()[rank::world_size]


# %% wrong: shuffled within fixed shares | wrong | says: Shuffle all samples first
def partition(rank, world_size, length, seed):
    own = torch.arange(rank, length, world_size)
    return own[torch.randperm(len(own), generator=torch.Generator().manual_seed(seed))].tolist()


# %% wrong: moved along by the seed | wrong | says: randperm
def partition(rank, world_size, length, seed):
    return [(i + seed) % length for i in range(rank, length, world_size)]


# %% wrong: the ranks change places, and each shuffles a fixed block | wrong | says: Shuffle all samples first
def partition(rank, world_size, length, seed):
    block = torch.arange(length).tensor_split(world_size)[(rank + seed) % world_size]
    return block[torch.randperm(len(block), generator=torch.Generator().manual_seed(seed))].tolist()


# %% wrong: seed 0 is taken for no seed | wrong | says: seeded with `seed`
def partition(rank, world_size, length, seed):
    if seed:
        torch.manual_seed(seed)
    return torch.randperm(length).tolist()[rank::world_size]


# %% wrong: an order that is kept, but was not seeded | wrong | says: seeded with `seed`
ORDERS = {}


def partition(rank, world_size, length, seed):
    order = ORDERS.setdefault((length, seed), torch.randperm(length))
    return order.tolist()[rank::world_size]
