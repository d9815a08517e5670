# %% receives into the tensor that is in flight | crashed
# Between issue and wait() a tensor belongs to its transfer: nothing may write to one that is sent, no
# irecv either, nor to one that receives. Receive into a tensor of its own, such as torch.empty_like(x),
# and add up after the wait.
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    works = [dist.isend(x, partner), dist.irecv(x, partner)]
    for work in works:
        work.wait()
    return x


# %% the received tensor is returned before wait
# This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous
# call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic
# made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it.
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


# %% waits for the send before the receive is posted | deadlocked
# With isend and irecv no rank has to receive first, as they return at once: issue all transfers, and only
# then wait for the first of them.
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    dist.isend(x, partner).wait()
    dist.irecv(theirs, partner).wait()
    return theirs


# %% waits by polling | timed out
# Rank 0 never waits for its isend with rank 1 (1, line 7). Under gloo a transfer is over, and sure to
# happen at all, only when wait() has returned: keep the Work that the call returns. is_completed() stays
# False until then.
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    works = [dist.isend(x, partner), dist.irecv(theirs, partner)]
    while not all(work.is_completed() for work in works):
        pass
    return theirs


# %% by way of float32
# This is the right value as float32 holds it. Keep the dtype of what you are given.
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    mine, theirs = x.float(), torch.empty(x.shape)
    for work in [dist.isend(mine, partner), dist.irecv(theirs, partner)]:
        work.wait()
    return theirs.to(x.dtype)


# %% sleeps, then takes the data, then waits
# This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous
# call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic
# made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it.
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
