# %% one stretch
# This is one block of consecutive tokens, so the first rank has little work and the last one much. Take two
# chunks, one from each end.
def zigzag(length, world_size, rank):
    return torch.arange(length).chunk(world_size)[rank]


# %% striped
# This takes every world_size-th token. Take two chunks, one from each end.
def zigzag(length, world_size, rank):
    return torch.arange(rank, length, world_size)


# %% the late chunk first
# The late chunk comes first. The positions ascend: put the early chunk first.
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[-1 - rank], chunks[rank]])


# %% mirrored token by token
# The positions of the late chunk descend. All positions ascend.
def zigzag(length, world_size, rank):
    own = torch.arange(length).chunk(2 * world_size)[rank]
    return torch.cat([own, length - 1 - own])


# %% two chunks that do not mirror
# The second chunk is not the mirror image of the first: rank r has chunk r from the front and chunk r from
# the end.
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[rank + world_size]])


# %% int32
# The positions are right, the dtype is not: return int64.
def zigzag(length, world_size, rank):
    chunks = torch.arange(length, dtype=torch.int32).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[-1 - rank]])


# %% every world_size-th token, mirrored
# This mirrors single tokens. Take two chunks of consecutive tokens, chunk r from the front and chunk r from
# the end.
def zigzag(length, world_size, rank):
    own = [t for t in range(length // 2) if t % world_size == rank]
    return torch.tensor(sorted(own + [length - 1 - t for t in own]))
