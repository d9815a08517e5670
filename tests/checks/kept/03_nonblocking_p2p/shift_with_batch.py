# %% wrong: received into x itself | crashed | says: no irecv either


# %% wrong: the transfer is started, not described | crashed | says: takes the function itself


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


# %% wrong: by way of float32 | wrong | says: expected
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
