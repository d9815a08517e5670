# %% wrong: the padding repeats the last sample | wrong | says: Padding repeats the order from its start


# %% wrong: python's shuffle | wrong | says: gives the shuffled order


# %% wrong: torch's own sampler | crashed | says: torch's is put away


# %% wrong: torch's own sampler, imported above the function | crashed | says: torch's is put away
from torch.utils.data import DistributedSampler as Own


def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    sampler = Own(range(length), num_replicas, rank, shuffle, seed, drop_last)
    sampler.set_epoch(epoch)
    return list(sampler)


# %% wrong: torch's own sampler, inherited | crashed | says: torch's is put away
from torch.utils.data import DistributedSampler


class Mine(DistributedSampler):
    pass


def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    sampler = Mine(range(length), num_replicas, rank, shuffle, seed, drop_last)
    sampler.set_epoch(epoch)
    return list(sampler)


# %% wrong: the padding is not shuffled | wrong | says: Padding repeats the order from its start
def sampler_indices(length, num_replicas, rank, shuffle, drop_last, seed, epoch):
    order = list(range(length))
    padding = list(range(length)) * num_replicas
    if shuffle:
        order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch)).tolist()
    each = length // num_replicas if drop_last else -(-length // num_replicas)
    return (order + padding)[rank : each * num_replicas : num_replicas]
