# %% only for powers of two | crashed
# {n} is not a power of two. Ranks {most} and above first send their `x` to rank - {most}, sit out the
# doubling, and are sent the sum at the end.
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
# {n} is not a power of two. Ranks {most} and above first send their `x` to rank - {most}, sit out the
# doubling, and are sent the sum at the end.
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


# %% both send first | deadlocked
# Both directions can go in one round: begin your message with `isend`, receive, then `wait()` for what
# you sent.
def recursive_doubling(rank, world_size, x):
    total, theirs, step = x.clone(), torch.empty_like(x), 1
    while step < world_size:
        dist.send(total, rank ^ step)
        dist.recv(theirs, rank ^ step)
        total += theirs
        step *= 2
    return total


# %% adds in place what it was given
# The caller still needs what it gave: work on a copy, such as `x.clone()`.
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
# Not all ranks are in that sum: each round doubles how many are in it. Is a round missing?
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
# {n} is not a power of two. Ranks {most} and above first send their `x` to rank - {most}, sit out the
# doubling, and are sent the sum at the end.
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


# %% isend is never waited for | deadlocked
# Rank 0 never waits for its isend with rank 1 (1, line 14). Under gloo a transfer is over, and sure to
# happen at all, only when wait() has returned: keep the Work that the call returns. is_completed() stays
# False until then.
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
        dist.isend(total, rank ^ step)
        dist.recv(theirs, rank ^ step)
        total = total + theirs
        step *= 2
    if rank + most < world_size:
        dist.send(total, rank + most)
    return total


# %% what comes from an extra rank goes into a copy
# The `x` of ranks {most} and above is missing in that sum: is what they send received, and added?
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
