# %% right: two chunks
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[-1 - rank]])


# %% right: by their ends
def zigzag(length, world_size, rank):
    size = length // (2 * world_size)
    early = torch.arange(rank * size, (rank + 1) * size)
    return torch.cat([early, torch.arange(length - (rank + 1) * size, length - rank * size)])


# %% wrong: one stretch | wrong | says: take two chunks, one from each end
def zigzag(length, world_size, rank):
    return torch.arange(length).chunk(world_size)[rank]


# %% wrong: striped | wrong | says: has a name of its own, striped
def zigzag(length, world_size, rank):
    return torch.arange(rank, length, world_size)


# %% wrong: the late chunk first | wrong | says: the early chunk first
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[-1 - rank], chunks[rank]])


# %% wrong: mirrored token by token | wrong | says: within the late chunk as well
def zigzag(length, world_size, rank):
    own = torch.arange(length).chunk(2 * world_size)[rank]
    return torch.cat([own, length - 1 - own])


# %% wrong: two chunks that do not mirror | wrong | says: the r-th from the end
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[rank + world_size]])


# %% wrong: one chunk too far | crashed | says: index out of range
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[2 * world_size - rank]])


# %% wrong: int32 | wrong | says: its dtype is int32, not int64
def zigzag(length, world_size, rank):
    chunks = torch.arange(length, dtype=torch.int32).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[-1 - rank]])
