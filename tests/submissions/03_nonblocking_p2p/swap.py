# %% right: receive posted first, a list of works
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    works = [dist.irecv(theirs, partner), dist.isend(x, partner)]
    for work in works:
        work.wait()
    return theirs


# %% right: two names, own rank asked for, result written back after both waits
def swap(rank, world_size, x):
    me = dist.get_rank()
    partner = dist.get_world_size() - me - 1
    if partner != me:
        box = torch.zeros(x.shape, dtype=x.dtype)
        sending = dist.isend(tensor=x, dst=partner)
        receiving = dist.irecv(tensor=box, src=partner)
        receiving.wait()
        sending.wait()
        x.copy_(box)
    return x


# %% right: as one batch
def both(x, box, peer):
    ops = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, box, peer)]
    [work.wait() for work in dist.batch_isend_irecv(ops)]


def swap(rank, world_size, x):
    if 2 * rank + 1 == world_size:
        return x.clone()
    box = x.clone()
    both(x, box, world_size - 1 - rank)
    return box


# %% wrong: blocking calls, in an order by rank | wrong | says: call isend and wait later
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    if rank < partner:
        dist.send(x, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(x, partner)
    return theirs


# %% wrong: nobody waits for the send | wrong | says: never waits for its isend
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    dist.isend(x, partner)
    dist.irecv(theirs, partner).wait()
    return theirs


# %% wrong: an all_gather hands everything to everybody | forbidden call | says: only send and recv
def swap(rank, world_size, x):
    everything = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(everything, x)
    return everything[world_size - 1 - rank]


# %% wrong: partners as in exchange_in_pairs | deadlocked | says: Rank 0 has returned, but rank 2 still waits
def swap(rank, world_size, x):
    partner = rank ^ 1
    theirs = torch.empty_like(x)
    works = [dist.isend(x, partner % world_size), dist.irecv(theirs, partner % world_size)]
    for work in works:
        work.wait()
    return theirs


# %% wrong: waits twice for the same work | crashed | says: called twice on one transfer
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    work = dist.isend(x, partner)
    work = dist.irecv(theirs, partner)
    for _ in range(2):
        work.wait()
    return theirs


# %% wrong: blocking calls, everybody sends first | deadlocked | says: issue all transfers
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    dist.send(x, partner)
    dist.recv(theirs, partner)
    return theirs


# %% wrong: receives into the tensor that is in flight | crashed | says: while it was in flight
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    works = [dist.isend(x, partner), dist.irecv(x, partner)]
    for work in works:
        work.wait()
    return x


# %% wrong: waits for the send before the receive is posted | deadlocked | says: issue all transfers
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    dist.isend(x, partner).wait()
    dist.irecv(theirs, partner).wait()
    return theirs


# %% wrong: waits by polling | timed out | says: never waits for its isend
def swap(rank, world_size, x):
    partner = world_size - 1 - rank
    if partner == rank:
        return x
    theirs = torch.empty_like(x)
    works = [dist.isend(x, partner), dist.irecv(theirs, partner)]
    while not all(work.is_completed() for work in works):
        pass
    return theirs
