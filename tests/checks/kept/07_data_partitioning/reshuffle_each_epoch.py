from torch.utils.data import DataLoader, DistributedSampler


# %% wrong: the seed is not handed on | wrong | says: order of seed 0


# %% wrong: batches come back, not values | wrong | says: not a list for each batch


# %% wrong: epochs are counted from 1 | wrong | says: torch's epoch 1


# %% wrong: a way through float32 | wrong | says: \[\d\]\[\d+\]: -?\d{4,} is not -?\d{4,}
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data.float(), batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([int(value) for batch in loader for value in batch])
    return seen


# %% wrong: the loader drops the last batch | wrong | says: `drop_last` stays as it is
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler, drop_last=True)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen


# %% wrong: seed and epoch are mixed by a product | wrong | says: is not
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    seen = []
    for epoch in range(epochs):
        sampler = DistributedSampler(data, seed=seed * (epoch + 1))
        loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen
