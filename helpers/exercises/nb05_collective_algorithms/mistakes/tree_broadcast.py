# %% only from rank 0
# This is the tensor of rank 0, but any rank may be the root. Number the ranks from it, `me = (rank - src) %
# world_size`, plan the tree with `me`, and turn a number into a rank with `(number + src) % world_size`.
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


# %% a way through float32
# The values were converted to float32 and lost digits. Send `x` as it is.
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
# A tensor was added or returned before the `wait()` of its receive returned, so it held no data yet. Wait
# first, then use the tensor.
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


# %% a tensor is taken for a vector
# The values are right, but flat. Keep the shape of `x`.
def tree_broadcast(rank, world_size, x, src):
    x = x.flatten()
    me, step = (rank - src) % world_size, 1
    while step < world_size:
        if me < step:
            if me + step < world_size:
                dist.send(x, (me + step + src) % world_size)
        elif me < 2 * step:
            dist.recv(x, (me - step + src) % world_size)
        step *= 2
    return x


# %% ranks renamed by xor | crashed
# `rank ^ src` numbers the ranks only in a world that is a power of two. Use `(rank - src) % world_size`.
def tree_broadcast(rank, world_size, x, src):
    me, step = rank ^ src, 1
    while step < world_size:
        if me < step:
            if (me + step) ^ src < world_size:
                dist.send(x, (me + step) ^ src)
        elif me < 2 * step:
            dist.recv(x, (me - step) ^ src)
        step *= 2
    return x


# %% only for powers of two | deadlocked
# {n} is not a power of two: in the last round some ranks have no one to send to. Skip the `send` where `me
# + step` is not below the world size.
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
