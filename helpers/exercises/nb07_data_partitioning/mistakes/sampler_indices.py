# %% the epoch is forgotten
# The epoch makes no difference. torch seeds the generator with `seed + epoch`.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(length, generator=generator).tolist()
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    total = each * num_replicas
    return (order * num_replicas)[:total][rank:total:num_replicas]


# %% no padding
# Not all ranks get the same number of samples. Without `drop_last` the order is padded until its length is
# a multiple of `num_replicas`.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(length, generator=generator).tolist()
    if drop_last:
        order = order[: length - length % num_replicas]
    return order[rank::num_replicas]


# %% contiguous blocks instead of strides
# Each rank takes a contiguous block. torch's sampler takes every `num_replicas`-th position.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(length, generator=generator).tolist()
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    order = (order * num_replicas)[: each * num_replicas]
    return order[rank * each : (rank + 1) * each]


# %% the padding repeats the last sample
# The padding is not what torch gives: it repeats the (shuffled) order from its start, as often as needed.
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
# The padding is too short: where there are more ranks than samples, the order is repeated more than once.
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
# `drop_last` has no effect. With it, the tail is left out, and nothing is padded.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(length, generator=generator).tolist()
    total = -(-length // num_replicas) * num_replicas
    return (order * num_replicas)[:total][rank:total:num_replicas]


# %% python's shuffle
# This is shuffled, but not as torch does it: `torch.randperm(length, generator=g)` with `g =
# torch.Generator().manual_seed(seed + epoch)`.
import random


def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    if shuffle:
        random.Random(seed + epoch).shuffle(order)
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    total = each * num_replicas
    return (order * num_replicas)[:total][rank:total:num_replicas]


# %% the padding is not shuffled
# The padding is not what torch gives: it repeats the (shuffled) order from its start, as often as needed.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    padding = list(range(length)) * num_replicas
    if shuffle:
        order = torch.randperm(
            length, generator=torch.Generator().manual_seed(seed + epoch)
        ).tolist()
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    return (order + padding)[rank : each * num_replicas : num_replicas]


# %% each rank pads for itself
# The padding is not what torch gives: it repeats the (shuffled) order from its start, as often as needed.
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(length, generator=generator).tolist() if shuffle else list(range(length))
    mine = order[rank::num_replicas]
    if drop_last:
        return mine[: length // num_replicas]
    if len(mine) < -(-length // num_replicas):
        mine.append(order[0])
    return mine
