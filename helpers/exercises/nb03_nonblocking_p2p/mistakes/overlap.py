# %% adds before it waits
# The received tensor is added before its `wait()` returned, so it holds no data yet. Wait for both
# transfers, then add.
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(box, (rank - 1) % world_size)]
    total = compute() + box
    for work in works:
        work.wait()
    return total


# %% what wait gives, taken for data
# `wait()` returns True, which counts as 1 in a sum. The data is in the tensor that you gave to `irecv`.
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    receiving = dist.irecv(y, (rank - 1) % world_size)
    mine = compute()
    sending.wait()
    return mine + receiving.wait()


# %% the sum with its own tensor
# This is `compute()` plus this rank's own `x`. Add the tensor that came from the rank before.
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    mine = compute()
    for work in works:
        work.wait()
    return mine + x


# %% the function itself, not its result | crashed
# `compute` is a function: call it, `compute()`, to get its result.
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(box, (rank - 1) % world_size)]
    mine = compute
    for work in works:
        work.wait()
    return mine + box


# %% only its own result
# This is the result of `compute()` alone. Add the tensor that came from the rank before.
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    mine = compute()
    for work in works:
        work.wait()
    return mine


# %% only what came
# This is the tensor that came from the rank before. Add the result of `compute()` to it.
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    compute()
    for work in works:
        work.wait()
    return y


# %% the wrong direction
# This is `compute()` plus the tensor of the next rank. Send to `(rank + 1) % world_size` and receive from
# `(rank - 1) % world_size`.
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank - 1) % world_size), dist.irecv(y, (rank + 1) % world_size)]
    mine = compute()
    for work in works:
        work.wait()
    return mine + y
