# %% the received tensor is returned before wait
# The tensor that you return was read before the `wait()` of its receive returned, or nothing was received
# into it. A buffer holds no received data until `wait()` returns.
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    sending = dist.isend(x, partner)
    receiving = dist.irecv(theirs, partner)
    result = theirs.clone()
    sending.wait()
    receiving.wait()
    return result


# %% by way of float32
# The values were converted to float32 and lost digits. Send `x` as it is, and receive into
# `torch.empty_like(x)`.
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    mine, theirs = x.float(), torch.empty(x.shape)
    for work in [dist.isend(mine, partner), dist.irecv(theirs, partner)]:
        work.wait()
    return theirs.to(x.dtype)


# %% sleeps, then takes the data, then waits
# The tensor that you return was read before the `wait()` of its receive returned, or nothing was received
# into it. A buffer holds no received data until `wait()` returns.
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


# %% the partner of notebook 02
# The partner here is `rank ^ 1`, as in notebook 02. This time it is the mirror image: `world_size - 1 -
# rank`.
def swap(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    theirs = torch.empty_like(x)
    for work in [dist.isend(x, partner), dist.irecv(theirs, partner)]:
        work.wait()
    return theirs


# %% the rank in the middle sends to itself | crashed
# The rank in the middle is its own partner. It returns `x` and makes no call.
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    theirs = torch.empty_like(x)
    works = [dist.isend(x, partner), dist.irecv(theirs, partner)]
    for work in works:
        work.wait()
    return theirs


# %% sent flat
# The values are right, but flat. Receive into `torch.empty_like(x)`, which has the shape of `x`.
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty(x.numel(), dtype=x.dtype)
    for work in [dist.isend(x.flatten(), partner), dist.irecv(theirs, partner)]:
        work.wait()
    return theirs
