# %% one stretch
# This is one stretch. It is short of work on the first rank and long on the last: take two chunks, one
# from each end.
def zigzag(length, world_size, rank):
    return torch.arange(length).chunk(world_size)[rank]


# %% striped
# Every world_size-th token is nearly balanced, and has a name of its own, striped. Here two chunks are
# wanted.
def zigzag(length, world_size, rank):
    return torch.arange(rank, length, world_size)


# %% the late chunk first
# The positions of a rank ascend: the early chunk first.
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[-1 - rank], chunks[rank]])


# %% mirrored token by token
# The positions of a rank ascend, within the late chunk as well.
def zigzag(length, world_size, rank):
    own = torch.arange(length).chunk(2 * world_size)[rank]
    return torch.cat([own, length - 1 - own])


# %% two chunks that do not mirror
# Rank r has the r-th chunk from the front and the r-th from the end.
def zigzag(length, world_size, rank):
    chunks = torch.arange(length).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[rank + world_size]])


# %% int32
# The numbers are right, the dtype is not.
def zigzag(length, world_size, rank):
    chunks = torch.arange(length, dtype=torch.int32).chunk(2 * world_size)
    return torch.cat([chunks[rank], chunks[-1 - rank]])
