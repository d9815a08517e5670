from torch.utils.data import DataLoader, DistributedSampler


# %% right: set_epoch first
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen


# %% right: rank and world size are named, the tensors joined
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, seed=seed)
    loader = DataLoader(data, batch_size, sampler=sampler)
    result = []
    for e in range(epochs):
        loader.sampler.set_epoch(e)
        result.append(torch.cat(list(loader)).tolist())
    return result


# %% right: a new sampler for each epoch, its seed moved on
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    result = []
    for epoch in range(epochs):
        sampler = DistributedSampler(data, world_size, rank, seed=seed + epoch)
        loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
        result.append([int(x) for batch in loader for x in batch])
    return result


# %% wrong: seed and epoch are mixed by a product | wrong | says: \[1\]\[0\]: .* is not
def reshuffle_each_epoch(rank, world_size, data, batch_size, epochs, seed):
    seen = []
    for epoch in range(epochs):
        sampler = DistributedSampler(data, seed=seed * (epoch + 1))
        loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
        seen.append([value for batch in loader for value in batch.tolist()])
    return seen
