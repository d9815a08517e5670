# %% only for powers of two | crashed
# {n} is not a power of two. Ranks from {most} on first send their `x` to rank - {most}, take no part in the
# doubling, and receive the sum at the end.
def recursive_doubling(rank, world_size, x):
    total, theirs, step = x.clone(), torch.empty_like(x), 1
    while step < world_size:
        work = dist.isend(total, rank ^ step)
        dist.recv(theirs, rank ^ step)
        work.wait()
        total += theirs
        step *= 2
    return total


# %% a partner that does not exist is left out
# {n} is not a power of two. Ranks from {most} on first send their `x` to rank - {most}, take no part in the
# doubling, and receive the sum at the end.
def recursive_doubling(rank, world_size, x):
    total, theirs, step = x.clone(), torch.empty_like(x), 1
    while step < world_size:
        if rank ^ step < world_size:
            work = dist.isend(total, rank ^ step)
            dist.recv(theirs, rank ^ step)
            work.wait()
            total += theirs
        step *= 2
    return total


# %% adds in place what it was given
# `x` was changed, but it must keep its values. Work on a copy: `x.clone()`.
def recursive_doubling(rank, world_size, x):
    theirs = torch.empty_like(x)
    most = 2 ** (world_size.bit_length() - 1)
    if rank >= most:
        dist.send(x, rank - most)
        dist.recv(x, rank - most)
        return x
    if rank + most < world_size:
        dist.recv(theirs, rank + most)
        x += theirs
    step = 1
    while step < most:
        work = dist.isend(x, rank ^ step)
        dist.recv(theirs, rank ^ step)
        work.wait()
        x += theirs
        step *= 2
    if rank + most < world_size:
        dist.send(x, rank + most)
    return x


# %% one round too few
# Some ranks are missing from this sum: a round is left out. `step` runs through all powers of two below the
# world size.
def recursive_doubling(rank, world_size, x):
    total, theirs, step = x.clone(), torch.empty_like(x), 1
    while step < world_size // 2:
        work = dist.isend(total, rank ^ step)
        dist.recv(theirs, rank ^ step)
        work.wait()
        total += theirs
        step *= 2
    return total


# %% the extra ranks are never told the sum
# {n} is not a power of two. Ranks from {most} on first send their `x` to rank - {most}, take no part in the
# doubling, and receive the sum at the end.
def recursive_doubling(rank, world_size, x):
    total, theirs = x.clone(), torch.empty_like(x)
    most = 2 ** (world_size.bit_length() - 1)
    if rank >= most:
        dist.send(total, rank - most)
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
    return total


# %% what comes from an extra rank goes into a copy
# The `x` of ranks from {most} on is missing from the sum. Receive it, and add what was received.
def recursive_doubling(rank, world_size, x):
    total, theirs = x.clone(), torch.zeros_like(x)
    most = 2 ** (world_size.bit_length() - 1)
    if rank >= most:
        dist.send(total, rank - most)
        dist.recv(total, rank - most)
        return total
    if rank + most < world_size:
        dist.recv(theirs.clone(), rank + most)
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


# %% the sum is made in float32
# The sum was computed in float32 and lost digits. Add in the dtype of `x`.
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
