# %% wrong: what wait gives, taken for data | wrong | says: wait\(\) returns True


# %% wrong: the sum with its own tensor | wrong | says: plus the rank's own `x`
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    mine = compute()
    for work in works:
        work.wait()
    return mine + x


# %% wrong: a buffer of the default dtype | wrong | says: expected tensor.*dtype
def overlap(rank, world_size, x, compute):
    y = torch.empty(x.shape)
    works = [dist.isend(x.float(), (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    mine = compute()
    for work in works:
        work.wait()
    return mine + y.to(x.dtype)


# %% wrong: the result is written into the tensor that is still sent | crashed | says: no irecv either
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    x.copy_(compute())
    for work in works:
        work.wait()
    return x + y
