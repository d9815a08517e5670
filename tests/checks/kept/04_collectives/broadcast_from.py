# %% right: without waiting, and a box on every rank
def broadcast_from(rank, world_size, x, shape, dtype, src):
    box = torch.zeros(shape).to(dtype)
    if dist.get_rank() == src:
        box.copy_(x)
    work = dist.broadcast(box, src, async_op=True)
    work.wait()
    return box


# %% right: asks until it is over
def broadcast_from(rank, world_size, x, shape, dtype, src):
    if x is None:
        x = torch.zeros(shape, dtype=dtype)
    work = dist.broadcast(x, src=src, async_op=True)
    while not work.is_completed():
        pass
    return x


# %% wrong: the box has the default dtype | wrong | says: its dtype is float32


# %% wrong: started, never waited for | wrong | says: never calls wait
def broadcast_from(rank, world_size, x, shape, dtype, src):
    if x is None:
        x = torch.zeros(shape, dtype=dtype)
    work = dist.broadcast(x, src=src, async_op=True)
    return x
