# %% a rank that is its own target | crashed
# A shift by {by} among {n} ranks moves nothing: return `x` at once.
def shift_with_batch(rank, world_size, x, by):
    box = torch.empty_like(x)
    ops = [
        dist.P2POp(dist.isend, x, (rank + by) % world_size),
        dist.P2POp(dist.irecv, box, (rank - by) % world_size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return box


# %% received into x itself | crashed
# Between issue and wait() a tensor belongs to its transfer: nothing may write to one that is sent, no
# irecv either, nor to one that receives. Receive into a tensor of its own, such as torch.empty_like(x),
# and add up after the wait.
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    ops = [
        dist.P2POp(dist.isend, x, (rank + by) % world_size),
        dist.P2POp(dist.irecv, x, (rank - by) % world_size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return x


# %% the transfer is started, not described | crashed
# P2POp takes the function itself and calls it later: dist.P2POp(dist.isend, x, peer), without parentheses
# after isend; isend or irecv, not send or recv.
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
# This is the right value as float32 holds it. Keep the dtype of what you are given.
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
