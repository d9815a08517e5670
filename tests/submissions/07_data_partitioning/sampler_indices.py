# %% right: repeat often enough, cut, stride
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(length, generator=generator).tolist()
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    total = each * num_replicas
    return (order * num_replicas)[:total][rank:total:num_replicas]


# %% right: index arithmetic, modulo for the padding
import math


def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    g = torch.Generator()
    g.manual_seed(seed + epoch)
    order = torch.randperm(length, generator=g) if shuffle else torch.arange(length)
    n = math.floor(length / num_replicas) if drop_last else math.ceil(length / num_replicas)
    return [int(order[(rank + k * num_replicas) % length]) for k in range(n)]


# %% right: a tensor comes back
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = torch.arange(length)
    if shuffle:
        order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))
    if drop_last:
        order = order[: length - length % num_replicas]
    else:
        while len(order) % num_replicas:
            order = torch.cat([order, order[:1] if False else order[len(order) % length][None]])
    return order[rank::num_replicas]


# %% wrong: torch's own sampler | crashed | says: torch's own is disabled
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    from torch.utils.data import DistributedSampler

    sampler = DistributedSampler(range(length), num_replicas, rank, shuffle, seed, drop_last)
    sampler.set_epoch(epoch)
    return list(sampler)


# %% wrong: torch's own sampler, imported above the function | crashed | says: torch's own is disabled
from torch.utils.data import DistributedSampler as Own


def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    sampler = Own(range(length), num_replicas, rank, shuffle, seed, drop_last)
    sampler.set_epoch(epoch)
    return list(sampler)


# %% wrong: torch's own sampler, inherited | crashed | says: torch's own is disabled
from torch.utils.data import DistributedSampler


class Mine(DistributedSampler):
    pass


def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    sampler = Mine(range(length), num_replicas, rank, shuffle, seed, drop_last)
    sampler.set_epoch(epoch)
    return list(sampler)


# %% wrong: torch's own, loaded anew | crashed | says: torch's own is disabled
import importlib

import torch.utils.data.distributed


def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    module = importlib.reload(torch.utils.data.distributed)
    sampler = module.DistributedSampler(range(length), num_replicas, rank, shuffle, seed, drop_last)
    sampler.set_epoch(epoch)
    return list(sampler)
