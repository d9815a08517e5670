# %% right: two chunks
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[-1 - rank]])


# %% right: by their ends
def zigzag(length, world_size, rank):
    size = length // (2 * world_size)
    early = torch.arange(rank * size, (rank + 1) * size)
    return torch.cat([early, torch.arange(length - (rank + 1) * size, length - rank * size)])


# %% wrong: one chunk too far | crashed | says: index out of range
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[2 * world_size - rank]])
