# %% wrong: only from rank 0 | wrong | says: This is what rank 0 was given


# %% wrong: everybody receives from the root | crashed | says: receives from itself


# %% wrong: sends, but returns nothing | wrong | says: returns nothing


# %% wrong: a way through float32 | wrong | says: , not -?\d
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


# %% wrong: a tensor is taken for a vector | wrong | says: its shape is
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


# %% wrong: the receiver does not wait | wrong | says: is
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
