# %% wrong: everybody sends everything to everybody | wrong | says: 6 messages in all; 4 are needed


# %% wrong: adds in place what it was given | wrong | says: has changed `x`


# %% wrong: what comes from an extra rank goes into a copy | wrong | says: is what they send received, and added
def recursive_doubling(rank, world_size, x):
    total, theirs = x.clone(), torch.zeros(len(x))
    most = 2 ** (world_size.bit_length() - 1)
    if rank >= most:
        dist.send(total, rank - most)
        dist.recv(total, rank - most)
        return total
    if rank + most < world_size:
        dist.recv(theirs.to(x.dtype), rank + most)
        total = total + theirs
    step = 1
    while step < most:
        work = dist.isend(total, rank ^ step)
        box = torch.zeros_like(total)
        dist.recv(box, rank ^ step)
        work.wait()
        total = total + box
        step *= 2
    if rank + most < world_size:
        dist.send(total.to(x.dtype), rank + most)
    return total


# %% wrong: one round too few | wrong | says: Is a round missing


# %% wrong: a tree to rank 0 and back | wrong | says: 2 rounds; 1 is enough


# %% wrong: isend is never waited for | deadlocked | says: never waits for its isend


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


# %% wrong: the sum is made in float32 | wrong | says: , not -?\d
def recursive_doubling(rank, world_size, x):
    total = x.float().clone()
    theirs = torch.empty_like(total)
    most = 2 ** (world_size.bit_length() - 1)
    if rank >= most:
        dist.send(total, rank - most)
        dist.recv(total, rank - most)
        return total.to(x.dtype)
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
    return total.to(x.dtype)
