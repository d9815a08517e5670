# %% adds before it waits
# This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous
# call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic
# made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it.
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(box, (rank - 1) % world_size)]
    total = compute() + box
    for work in works:
        work.wait()
    return total


# %% adds into the tensor that still receives | crashed
# Between issue and wait() a tensor belongs to its transfer: nothing may write to one that is sent, no
# irecv either, nor to one that receives. Receive into a tensor of its own, such as torch.empty_like(x),
# and add up after the wait.
def overlap(rank, world_size, x, compute):
    y = torch.zeros_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    y += compute()
    for work in works:
        work.wait()
    return y


# %% what wait gives, taken for data
# wait() returns True, which counts as 1; the data is in the tensor for irecv.
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    receiving = dist.irecv(y, (rank - 1) % world_size)
    mine = compute()
    sending.wait()
    return mine + receiving.wait()


# %% the sum with its own tensor
# This is compute() plus the rank's own `x`: add the tensor that came from the rank before.
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    mine = compute()
    for work in works:
        work.wait()
    return mine + x


# %% the result is written into the tensor that is still sent | crashed
# Between issue and wait() a tensor belongs to its transfer: nothing may write to one that is sent, no
# irecv either, nor to one that receives. Receive into a tensor of its own, such as torch.empty_like(x),
# and add up after the wait.
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    x.copy_(compute())
    for work in works:
        work.wait()
    return x + y
