# %% the epoch is forgotten
# The epoch makes no difference here: torch's generator is seeded with `seed + epoch`.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(length, generator=generator).tolist()
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    total = each * num_replicas
    return (order * num_replicas)[:total][rank:total:num_replicas]


# %% no padding
# Every rank gets the same number of samples: with drop_last the tail is left out, without it the order is
# padded, on every rank alike.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(length, generator=generator).tolist()
    if drop_last:
        order = order[: length - length % num_replicas]
    return order[rank::num_replicas]


# %% contiguous blocks instead of strides
# This rank takes a block; torch's takes every p-th position.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(length, generator=generator).tolist()
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    order = (order * num_replicas)[: each * num_replicas]
    return order[rank * each : (rank + 1) * each]


# %% the padding repeats the last sample
# Padding repeats the order from its start.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(length, generator=generator).tolist()
    if drop_last:
        order = order[: length - length % num_replicas]
    while len(order) % num_replicas:
        order.append(order[-1])
    return order[rank::num_replicas]


# %% the padding is added once, however long it must be
# Where the padding is longer than the data, the data is repeated more than once.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(length, generator=generator).tolist()
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    total = each * num_replicas
    order = order[:total] if drop_last else order + order[: total - length]
    return order[rank:total:num_replicas]


# %% drop_last is ignored
# `drop_last` decides: with drop_last the tail is left out, without it the order is padded, on every rank
# alike.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(length, generator=generator).tolist()
    total = -(-length // num_replicas) * num_replicas
    return (order * num_replicas)[:total][rank:total:num_replicas]


# %% python's shuffle
# `torch.randperm(length, generator=g)` gives the shuffled order, with g =
# torch.Generator().manual_seed(seed + epoch).
import random


def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        random.Random(seed + epoch).shuffle(order)
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    total = each * num_replicas
    return (order * num_replicas)[:total][rank:total:num_replicas]


# %% the padding is not shuffled
# Padding repeats the order from its start.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    padding = list(range(length)) * num_replicas
    if shuffle:
        order = torch.randperm(
            length, generator=torch.Generator().manual_seed(seed + epoch)
        ).tolist()
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    return (order + padding)[rank : each * num_replicas : num_replicas]
