# %% a rank that is its own target | crashed
# A shift by {by} among {n} ranks moves nothing. Return `x` and make no call.
def shift_with_batch(rank, world_size, x, by):
    box = torch.empty_like(x)
    ops = [
        dist.P2POp(dist.isend, x, (rank + by) % world_size),
        dist.P2POp(dist.irecv, box, (rank - by) % world_size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return box


# %% the transfer is started, not described | crashed
# A P2POp takes the function `dist.isend` or `dist.irecv` itself. Do not call it, and do not pass the
# blocking `dist.send` or `dist.recv`.
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    ops = [
        dist.P2POp(dist.isend(x, (rank + by) % world_size), x, (rank + by) % world_size),
        dist.P2POp(dist.irecv, box, (rank - by) % world_size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return box


# %% by way of float32
# The values were converted to float32 and lost digits. Send `x` as it is, and receive into
# `torch.empty_like(x)`.
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty(x.shape)
    ops = [
        dist.P2POp(dist.isend, x.float(), (rank + by) % world_size),
        dist.P2POp(dist.irecv, box, (rank - by) % world_size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return box.to(x.dtype)


# %% nobody waits
# The tensor that you return was read before the `wait()` of its receive returned, or nothing was received
# into it. A buffer holds no received data until `wait()` returns. `batch_isend_irecv` returns the Works to
# wait for.
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    ops = [
        dist.P2POp(dist.isend, x, (rank + by) % world_size),
        dist.P2POp(dist.irecv, box, (rank - by) % world_size),
    ]
    dist.batch_isend_irecv(ops)
    return box


# %% shifts the other way
# The shift goes the wrong way: send to `(rank + by) % world_size`, receive from `(rank - by) % world_size`.
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    ops = [
        dist.P2POp(dist.isend, x, (rank - by) % world_size),
        dist.P2POp(dist.irecv, box, (rank + by) % world_size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return box


# %% works in place of descriptions | crashed
# The list holds transfers that have been started already. `batch_isend_irecv` takes descriptions:
# `dist.P2POp(dist.isend, x, peer)`.
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    ops = [dist.isend(x, (rank + by) % world_size), dist.irecv(box, (rank - by) % world_size)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return box


# %% blocking functions in the descriptions | crashed
# A P2POp takes the function `dist.isend` or `dist.irecv` itself. Do not call it, and do not pass the
# blocking `dist.send` or `dist.recv`.
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    ops = [
        dist.P2POp(dist.send, x, (rank + by) % world_size),
        dist.P2POp(dist.recv, box, (rank - by) % world_size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return box
