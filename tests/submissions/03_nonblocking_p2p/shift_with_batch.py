# %% right: two operations, one batch
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    ops = [
        dist.P2POp(dist.isend, x, (rank + by) % world_size),
        dist.P2POp(dist.irecv, box, (rank - by) % world_size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return box


# %% right: receive first, keyword arguments, a helper
def op(kind, tensor, peer):
    return dist.P2POp(op=kind, tensor=tensor, peer=peer % dist.get_world_size())


def shift_with_batch(rank, world_size, x, by):
    out = x.clone()
    if by % world_size:
        works = dist.batch_isend_irecv(
            [op(dist.irecv, out, rank - by), op(dist.isend, x, rank + by)]
        )
        works[0].wait()
        works[1].wait()
    return out


# %% wrong: isend and irecv one by one | wrong | says: one batch_isend_irecv
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    works = [dist.isend(x, (rank + by) % world_size), dist.irecv(box, (rank - by) % world_size)]
    for work in works:
        work.wait()
    return box


# %% wrong: two batches | wrong | says: one call takes both transfers
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x, (rank + by) % world_size)])
    works += dist.batch_isend_irecv([dist.P2POp(dist.irecv, box, (rank - by) % world_size)])
    for work in works:
        work.wait()
    return box


# %% wrong: only the last work is waited for | wrong | says: never waits for its send
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    ops = [
        dist.P2POp(dist.isend, x, (rank + by) % world_size),
        dist.P2POp(dist.irecv, box, (rank - by) % world_size),
    ]
    dist.batch_isend_irecv(ops)[-1].wait()
    return box


# %% wrong: the peer is not taken modulo the world size | crashed | says: % world_size
def shift_with_batch(rank, world_size, x, by):
    box = torch.empty_like(x)
    ops = [dist.P2POp(dist.isend, x, rank + by), dist.P2POp(dist.irecv, box, rank - by)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return box


# %% wrong: one batch for each operation, in a loop | wrong | says: one call takes both transfers
def shift_with_batch(rank, world_size, x, by):
    if by % world_size == 0:
        return x
    box = torch.empty_like(x)
    ops = [
        dist.P2POp(dist.isend, x, (rank + by) % world_size),
        dist.P2POp(dist.irecv, box, (rank - by) % world_size),
    ]
    works = []
    for op in ops:
        works += dist.batch_isend_irecv([op])
    for work in works:
        work.wait()
    return box


# %% wrong: steps of one, as often as asked for | wrong | says: it sends only to|once is right
def shift_with_batch(rank, world_size, x, by):
    for _ in range(by % world_size):
        box = torch.empty_like(x)
        ops = [
            dist.P2POp(dist.isend, x, (rank + 1) % world_size),
            dist.P2POp(dist.irecv, box, (rank - 1) % world_size),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        x = box
    return x


# %% wrong: received into x itself | crashed | says: while it was in flight
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
