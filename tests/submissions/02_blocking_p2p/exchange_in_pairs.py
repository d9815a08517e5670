# %% right: the lower rank sends first
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
    return theirs


# %% right: odd ranks send first, the partner found by arithmetic
def exchange_in_pairs(rank, world_size, x):
    even = rank % 2 == 0
    partner = rank + 1 if even else rank - 1
    if partner == world_size:
        return x.clone()
    box = torch.zeros(x.shape, dtype=x.dtype)
    steps = [lambda: dist.recv(box, src=partner), lambda: dist.send(x, dst=partner)]
    for step in steps if even else reversed(steps):
        step()
    return box


# %% right: the send does not wait
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    theirs = torch.empty_like(x)
    sending = dist.isend(x, partner)
    dist.recv(theirs, partner)
    sending.wait()
    return theirs


# %% wrong: both send first | deadlocked | says: cycle of sends
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    theirs = torch.empty_like(x)
    dist.send(x, partner)
    dist.recv(theirs, partner)
    return theirs


# %% wrong: gathers everything to take one part | forbidden call | says: only send and recv may be used
def exchange_in_pairs(rank, world_size, x):
    everything = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(everything, x)
    partner = rank ^ 1
    return everything[partner] if partner < world_size else x


# %% wrong: the neighbor is taken for the partner | deadlocked | says: A cycle: each rank waits for the next one
def exchange_in_pairs(rank, world_size, x):
    partner = (rank + 1) % world_size
    theirs = torch.empty_like(x)
    if rank % 2 == 0:
        dist.send(x, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(x, partner)
    return theirs


# %% wrong: prints the partner's tensor | wrong | says: prints, but returns nothing
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    theirs = torch.empty_like(x)
    if partner < world_size and rank < partner:
        dist.send(x, partner)
        dist.recv(theirs, partner)
    elif partner < world_size:
        dist.recv(theirs, partner)
        dist.send(x, partner)
    print(theirs)


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
