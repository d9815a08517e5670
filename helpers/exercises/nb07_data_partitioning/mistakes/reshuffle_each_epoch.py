from torch.utils.data import DataLoader, DistributedSampler


# %% set_epoch is forgotten
# Every epoch has the same order: `sampler.set_epoch(epoch)` comes before each epoch.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    return [[value for batch in loader for value in batch.tolist()] for _ in range(epochs)]


# %% set_epoch at the end of the loop
# Each epoch has the order of the one before: set_epoch comes before the loader is read.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        seen.append([value for batch in loader for value in batch.tolist()])
        sampler.set_epoch(epoch)
    return seen


# %% the loader shuffles, without the sampler
# Each rank reads the whole of `data`, in an order that is not the sampler's: does the DataLoader have the
# sampler?
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    loader = DataLoader(data, batch_size=batch_size, shuffle=True)
    return [[value for batch in loader for value in batch.tolist()] for _ in range(epochs)]


# %% sampler and shuffle together | crashed
# The sampler shuffles; the DataLoader is given the sampler and no `shuffle`.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler, shuffle=True)
    return [[value for batch in loader for value in batch.tolist()] for _ in range(epochs)]


# %% the seed is not handed on
# This is the order of seed 0: hand `seed` to the sampler.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen


# %% batches come back, not values
# One flat list of ints for each epoch is wanted, not a list for each batch.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([batch.tolist() for batch in loader])
    return seen


# %% epochs are counted from 1
# Your first epoch is torch's epoch 1: the epochs count from 0.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(1, epochs + 1):
        sampler.set_epoch(epoch)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen


# %% the loader drops the last batch
# Samples are missing: `drop_last` stays as it is, False, in the sampler and in the loader.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler, drop_last=True)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen
