# %% wrong: receives into its own tensor before it is sent | wrong | says: has overwritten `x` before it was sent


# %% wrong: prints the partner's tensor | wrong | says: prints, but returns nothing


# %% wrong: only ranks 0 and 1 | wrong | says: so must 2 and 3
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


# %% wrong: by way of float32 | wrong | says: expected
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


# %% wrong: sent flat, received flat | wrong | says: its shape is
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


# %% wrong: a buffer of eight bytes an element, enough for all | wrong | says: its dtype is float64
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    theirs = torch.zeros(x.shape, dtype=torch.float64)
    if rank < partner:
        dist.send(x, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(x, partner)
    return theirs


# %% wrong: a round too many, to be sure | wrong | says: once is right
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    theirs = torch.empty_like(x)
    for _ in range(2):
        if rank < partner:
            dist.send(x, partner)
            dist.recv(theirs, partner)
        else:
            dist.recv(theirs, partner)
            dist.send(x, partner)
    return theirs
