from torch.utils.data import DataLoader, DistributedSampler


# %% set_epoch is forgotten
# Every epoch has the same order. Call `sampler.set_epoch(epoch)` before each epoch.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    return [[value for batch in loader for value in batch.tolist()] for _ in range(epochs)]


# %% set_epoch at the end of the loop
# Each epoch from the second on has the order of the one before. Call `set_epoch` before the loader is read.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        seen.append([value for batch in loader for value in batch.tolist()])
        sampler.set_epoch(epoch)
    return seen


# %% the loader shuffles, without the sampler
# Each rank reads the whole of `data`, in an order that is not the sampler's. Pass the sampler to the
# DataLoader.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    loader = DataLoader(data, batch_size=batch_size, shuffle=True)
    return [[value for batch in loader for value in batch.tolist()] for _ in range(epochs)]


# %% sampler and shuffle together | crashed
# The sampler shuffles. Pass it to the DataLoader, without `shuffle`.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler, shuffle=True)
    return [[value for batch in loader for value in batch.tolist()] for _ in range(epochs)]


# %% the seed is not handed on
# This is the order of seed 0. Pass `seed` to the sampler.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen


# %% batches come back, not values
# There is a list for each batch. Return one flat list of ints for each epoch.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([batch.tolist() for batch in loader])
    return seen


# %% epochs are counted from 1
# The first epoch has the order of torch's epoch 1. Epochs are counted from 0.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(1, epochs + 1):
        sampler.set_epoch(epoch)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen


# %% the loader drops the last batch
# Samples are missing: the loader drops its last, shorter batch. Leave `drop_last` as it is.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler, drop_last=True)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen


# %% indices in place of values
# These are the indices that the sampler gives. Return the values that the loader reads.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append(list(sampler))
    return seen


# %% values by way of int32
# Values beyond 32 bits were changed: they were converted to int32. `batch.tolist()` keeps them.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([value for batch in loader for value in batch.int().tolist()])
    return seen


# %% values by way of float32
# Large values were changed: they were converted to float32. `batch.tolist()` keeps them.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([int(value) for batch in loader for value in batch.float()])
    return seen


# %% every rank shuffles its own strided part
# Each rank shuffles its own part, so it reads the same samples in every epoch. DistributedSampler shuffles
# all samples first, then deals them out.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    generator = torch.Generator().manual_seed(seed)
    loader = DataLoader(
        data[rank::world_size], batch_size=batch_size, shuffle=True, generator=generator
    )
    return [[value for batch in loader for value in batch.tolist()] for _ in range(epochs)]


# %% the sampler does not shuffle
# The samples are not shuffled. Leave the sampler's `shuffle` as it is.
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed, shuffle=False)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    return [[value for batch in loader for value in batch.tolist()] for _ in range(epochs)]
