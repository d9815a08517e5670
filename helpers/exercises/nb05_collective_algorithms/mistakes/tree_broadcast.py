# %% only from rank 0
# This is what rank 0 was given, but any rank may be the root. Number the ranks from it, `me = (rank -
# src) % world_size`, plan the tree with `me`, and turn a number back into a rank by `(number + src) %
# world_size`.
def tree_broadcast(rank, world_size, x, src):
    step = 1
    while step < world_size:
        if rank < step:
            if rank + step < world_size:
                dist.send(x, rank + step)
        elif rank < 2 * step:
            dist.recv(x, rank - step)
        step *= 2
    return x


# %% only for powers of two | deadlocked
# {n} is no power of two: in the last round, has every rank that sends somebody to send to, and does
# nobody else receive?
def tree_broadcast(rank, world_size, x, src):
    me, step = (rank - src) % world_size, 1
    while step < world_size:
        if me < step:
            dist.send(
                x, me + step + src if me + step + src < world_size else me + step + src - world_size
            )
        elif me < 2 * step:
            dist.recv(x, (me - step + src) % world_size)
        step *= 2
    return x


# %% everybody receives from the root | crashed
# A rank sends to itself or receives from itself. What it has already needs no message.
def tree_broadcast(rank, world_size, x, src):
    dist.recv(x, src)
    for other in range(world_size):
        if other != src and rank == src:
            dist.send(x, other)
    return x


# %% a way through float32
# This is the right value as float32 holds it. Keep the dtype of what you are given.
def tree_broadcast(rank, world_size, x, src):
    box = x.float()
    me, step = (rank - src) % world_size, 1
    while step < world_size:
        if me < step:
            if me + step < world_size:
                dist.send(box, (me + step + src) % world_size)
        elif me < 2 * step:
            dist.recv(box, (me - step + src) % world_size)
        step *= 2
    return box.to(x.dtype)


# %% the receiver does not wait
# This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous
# call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic
# made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it.
def tree_broadcast(rank, world_size, x, src):
    import time

    works, me, step = [], (rank - src) % world_size, 1
    while step < world_size:
        if me < step:
            if me + step < world_size:
                dist.send(x, (me + step + src) % world_size)
        elif me < 2 * step:
            works.append(dist.irecv(x, (me - step + src) % world_size))
            time.sleep(0.1)
        step *= 2
    got = x.clone()
    for work in works:
        work.wait()
    return got
