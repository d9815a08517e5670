# %% right: an empty tensor where there is none
def broadcast_from(rank, world_size, x, shape, dtype, src):
    if x is None:
        x = torch.empty(shape, dtype=dtype)
    dist.broadcast(x, src=src)
    return x


# %% right: without waiting, and a box on every rank
def broadcast_from(rank, world_size, x, shape, dtype, src):
    box = torch.zeros(shape).to(dtype)
    if dist.get_rank() == src:
        box.copy_(x)
    work = dist.broadcast(box, src, async_op=True)
    work.wait()
    return box


# %% right: the source's rank within the group
def broadcast_from(rank, world_size, x, shape, dtype, src):
    y = x.clone() if rank == src else torch.ones(shape, dtype=dtype)
    dist.broadcast(y, group_src=src)
    return y


# %% wrong: from rank 0, with boxes everywhere | wrong | says: names rank 0
def broadcast_from(rank, world_size, x, shape, dtype, src):
    box = torch.zeros(shape, dtype=dtype) if x is None else x.clone()
    dist.broadcast(box, src=0)
    return box


# %% wrong: only the source makes the call | deadlocked | says: has returned
def broadcast_from(rank, world_size, x, shape, dtype, src):
    if rank == src:
        dist.broadcast(x, src=src)
        return x
    return torch.empty(shape, dtype=dtype)


# %% wrong: a loop of sends | forbidden call | says: only broadcast may be used
def broadcast_from(rank, world_size, x, shape, dtype, src):
    if rank == src:
        for other in range(world_size):
            if other != src:
                dist.send(x, other)
        return x
    box = torch.empty(shape, dtype=dtype)
    dist.recv(box, src)
    return box


# %% wrong: as a pickled object | wrong | says: pickle it and make two
def broadcast_from(rank, world_size, x, shape, dtype, src):
    box = [x]
    dist.broadcast_object_list(box, src=src)
    return box[0]


# %% wrong: a sum of zeros and x | forbidden call | says: only broadcast may be used
def broadcast_from(rank, world_size, x, shape, dtype, src):
    box = x if rank == src else torch.zeros(shape, dtype=dtype)
    dist.all_reduce(box)
    return box


# %% wrong: started, never waited for | wrong | says: never calls wait
def broadcast_from(rank, world_size, x, shape, dtype, src):
    if x is None:
        x = torch.zeros(shape, dtype=dtype)
    work = dist.broadcast(x, src=src, async_op=True)
    return x


# %% right: asks until it is over
def broadcast_from(rank, world_size, x, shape, dtype, src):
    if x is None:
        x = torch.zeros(shape, dtype=dtype)
    work = dist.broadcast(x, src=src, async_op=True)
    while not work.is_completed():
        pass
    return x


# %% wrong: always from rank 0 | crashed | says: names rank 0
def broadcast_from(rank, world_size, x, shape, dtype, src):
    if rank != 0:
        x = torch.empty(shape, dtype=dtype)
    dist.broadcast(x, src=0)
    return x
