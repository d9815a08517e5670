# %% wrong: receives into the tensor that is in flight | crashed | says: no irecv either


# %% wrong: the partner of notebook 02 | wrong | says: mirror image


# %% wrong: by way of float32 | wrong | says: expected
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    mine, theirs = x.float(), torch.empty(x.shape)
    for work in [dist.isend(mine, partner), dist.irecv(theirs, partner)]:
        work.wait()
    return theirs.to(x.dtype)


# %% wrong: sent flat | wrong | says: its shape is
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty(x.numel(), dtype=x.dtype)
    for work in [dist.isend(x.flatten(), partner), dist.irecv(theirs, partner)]:
        work.wait()
    return theirs


# %% wrong: sleeps, then takes the data, then waits | wrong | says: read before wait
def swap(rank, world_size, x):
    import time

    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    works = [dist.isend(x, partner), dist.irecv(theirs, partner)]
    time.sleep(0.2)
    result = theirs.clone()
    for work in works:
        work.wait()
    return result
