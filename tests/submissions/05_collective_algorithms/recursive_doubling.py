# %% right: the extra ranks fold in first
def recursive_doubling(rank, world_size, x):
    total, theirs = x.clone(), torch.empty_like(x)
    most = 2 ** (world_size.bit_length() - 1)
    if rank >= most:
        dist.send(total, rank - most)
        dist.recv(total, rank - most)
        return total
    if rank + most < world_size:
        dist.recv(theirs, rank + most)
        total += theirs
    step = 1
    while step < most:
        work = dist.isend(total, rank ^ step)
        dist.recv(theirs, rank ^ step)
        work.wait()
        total += theirs
        step *= 2
    if rank + most < world_size:
        dist.send(total, rank + most)
    return total


# %% right: neighbors fold, as MPICH does, exchange by a batch, far partners first
def exchange(mine, partner):
    theirs = torch.zeros_like(mine)
    ops = [dist.P2POp(dist.irecv, theirs, partner), dist.P2POp(dist.isend, mine, partner)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return mine + theirs


def recursive_doubling(rank, world_size, x):
    most = 1
    while 2 * most <= world_size:
        most *= 2
    rest = world_size - most
    pair = rank < 2 * rest
    if pair and rank % 2 == 0:
        dist.send(x, rank + 1)
        out = torch.empty_like(x)
        dist.recv(out, rank + 1)
        return out
    if pair:
        box = torch.empty_like(x)
        dist.recv(box, rank - 1)
        x = x + box
    number = rank // 2 if pair else rank - rest
    step = most // 2
    while step:
        other = number ^ step
        x = exchange(x, 2 * other + 1 if other < rest else other + rest)
        step //= 2
    if pair:
        dist.send(x, rank - 1)
    return x.clone()


# %% right: irecv first, then send, a loop over exponents
import math


def recursive_doubling(rank: int, world_size: int, x: torch.Tensor) -> torch.Tensor:
    k = int(math.log2(world_size))
    full = 2**k
    total = torch.clone(x)
    if rank >= full:
        dist.isend(x, rank - full).wait()
        dist.irecv(total, rank - full).wait()
    else:
        extra = rank + full if rank + full < world_size else None
        box = torch.zeros_like(x)
        if extra is not None:
            dist.recv(box, src=extra)
            total = total + box
        for i in range(k):
            partner = rank ^ (1 << i)
            work = dist.irecv(box, src=partner)
            dist.isend(total, dst=partner).wait()
            work.wait()
            total = total + box
        if extra is not None:
            dist.send(total, dst=extra)
    return total


# %% wrong: one of a pair sends first, so each exchange takes two rounds | wrong | says: both partners send
def recursive_doubling(rank, world_size, x):
    total, theirs = x.clone(), torch.empty_like(x)
    most = 2 ** (world_size.bit_length() - 1)
    if rank >= most:
        dist.send(total, rank - most)
        dist.recv(total, rank - most)
        return total
    if rank + most < world_size:
        dist.recv(theirs, rank + most)
        total += theirs
    step = 1
    while step < most:
        partner = rank ^ step
        if rank < partner:
            dist.send(total, partner)
            dist.recv(theirs, partner)
        else:
            dist.recv(theirs, partner)
            dist.send(total, partner)
        total += theirs
        step *= 2
    if rank + most < world_size:
        dist.send(total, rank + most)
    return total


# %% wrong: everybody sends everything to everybody | wrong | says: 6 messages in all; 4 are needed
def recursive_doubling(rank, world_size, x):
    total = x.clone()
    works = [dist.isend(x, other) for other in range(world_size) if other != rank]
    box = torch.empty_like(x)
    for other in range(world_size):
        if other != rank:
            dist.recv(box, other)
            total += box
    for work in works:
        work.wait()
    return total


# %% wrong: an all_reduce | forbidden call | says: only send and recv may be used
def recursive_doubling(rank, world_size, x):
    total = x.clone()
    dist.all_reduce(total)
    return total


# %% wrong: a tree to rank 0 and back | wrong | says: 2 rounds; 1 is enough
def recursive_doubling(rank, world_size, x):
    total, theirs, step = x.clone(), torch.empty_like(x), 1
    while step < world_size:
        if rank % (2 * step) == step:
            dist.send(total, rank - step)
            break
        if rank + step < world_size:
            dist.recv(theirs, rank + step)
            total += theirs
        step *= 2
    if rank:
        dist.recv(total, rank - step)
    step //= 2
    while step:
        if rank + step < world_size:
            dist.send(total, rank + step)
        step //= 2
    return total


# %% wrong: adds to what is still being sent | crashed | says: changed before wait
def recursive_doubling(rank, world_size, x):
    total, theirs = x.clone(), torch.empty_like(x)
    most = 2 ** (world_size.bit_length() - 1)
    if rank >= most:
        dist.send(x, rank - most)
        dist.recv(total, rank - most)
        return total
    if rank + most < world_size:
        dist.recv(theirs, rank + most)
        total += theirs
    step = 1
    while step < most:
        work = dist.isend(total, rank ^ step)
        dist.recv(theirs, rank ^ step)
        total += theirs
        work.wait()
        step *= 2
    if rank + most < world_size:
        dist.send(total, rank + most)
    return total


# %% wrong: both send first | deadlocked | says: Both directions fit
def recursive_doubling(rank, world_size, x):
    total, theirs, step = x.clone(), torch.empty_like(x), 1
    while step < world_size:
        dist.send(total, rank ^ step)
        dist.recv(theirs, rank ^ step)
        total += theirs
        step *= 2
    return total
