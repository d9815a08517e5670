# %% receives into its own tensor before it is sent
# A rank of the pair gets its own tensor back: a rank receives into `x` before it sends `x`, or returns `x`
# as it is. Receive into a separate tensor, `torch.empty_like(x)`.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    if rank < partner:
        dist.send(x, partner)
        dist.recv(x, partner)
    else:
        dist.recv(x, partner)
        dist.send(x, partner)
    return x


# %% by way of float32
# The values were converted to float32 and lost digits. Send `x` as it is, and receive into
# `torch.empty_like(x)`.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    mine, theirs = x.float(), torch.empty(x.shape)
    if rank < partner:
        dist.send(mine, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(mine, partner)
    return theirs.to(x.dtype)


# %% the buffer has a fixed dtype
# The result is float32 whatever the dtype of `x`. Receive into `torch.empty_like(x)` and return that.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    theirs = torch.empty_like(x)
    if rank < partner:
        dist.send(x, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(x, partner)
    return theirs.float()


# %% only ranks 0 and 1
# Only ranks 0 and 1 exchange. Ranks 2 and 3 are a pair as well, and so on.
def exchange_in_pairs(rank, world_size, x):
    if rank > 1:
        return x
    theirs = torch.empty_like(x)
    if rank == 0:
        dist.send(x, 1)
        dist.recv(theirs, 1)
    else:
        dist.recv(theirs, 0)
        dist.send(x, 0)
    return theirs


# %% sent flat, received flat
# The values are right, but flat. Receive into `torch.empty_like(x)`, which has the shape of `x`.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    theirs = torch.empty(x.numel(), dtype=x.dtype)
    if rank < partner:
        dist.send(x.flatten(), partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(x.flatten(), partner)
    return theirs


# %% an odd world is forgotten | crashed
# In an odd world the last rank has no partner: `rank ^ 1` is not below `world_size`. It returns `x` at
# once.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    theirs = torch.empty_like(x)
    if rank < partner:
        dist.send(x, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(x, partner)
    return theirs


# %% as many elements as the first dimension | crashed
# `len(x)` is only the size of the first dimension, and a 0-d tensor has none. `torch.empty_like(x)` has the
# shape of `x`.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    theirs = torch.empty(len(x), dtype=x.dtype)
    if rank < partner:
        dist.send(x, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(x, partner)
    return theirs


# %% the odd rank out returns nothing
# The last rank has no partner and returns None. It returns its own tensor.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return None
    theirs = torch.empty_like(x)
    if rank < partner:
        dist.send(x, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(x, partner)
    return theirs


# %% the buffer has the default dtype
# The result is float32 whatever the dtype of `x`. Receive into `torch.empty_like(x)` and return that.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    box = torch.zeros(x.shape)
    if rank % 2 == 0:
        dist.send(x, partner)
        dist.recv(box, partner)
    else:
        dist.recv(box, partner)
        dist.send(x, partner)
    return box
