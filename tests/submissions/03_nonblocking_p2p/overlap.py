# %% right: issue, compute, wait
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(box, (rank - 1) % world_size)]
    mine = compute()
    for work in works:
        work.wait()
    return mine + box


# %% right: added in place, a batch
def overlap(rank, world_size, x, compute):
    box = torch.zeros_like(x)
    ops = [
        dist.P2POp(dist.irecv, box, (rank + world_size - 1) % world_size),
        dist.P2POp(dist.isend, x, (rank + 1) % world_size),
    ]
    works = dist.batch_isend_irecv(ops)
    total = compute()
    [work.wait() for work in works]
    total += box
    return total


# %% right: waits in the other order, the sum into the received tensor
def overlap(rank, world_size, x, compute):
    theirs = x.clone()
    incoming = dist.irecv(theirs, src=rank - 1 if rank else world_size - 1)
    outgoing = dist.isend(x, dst=rank + 1 if rank + 1 < world_size else 0)
    local = compute()
    incoming.wait()
    outgoing.wait()
    return theirs.add_(local)


# %% wrong: computes first | wrong | says: issue it before
def overlap(rank, world_size, x, compute):
    mine = compute()
    box = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(box, (rank - 1) % world_size)]
    for work in works:
        work.wait()
    return mine + box


# %% wrong: waits, then computes | wrong | says: wait after it
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(box, (rank - 1) % world_size)]
    for work in works:
        work.wait()
    return compute() + box


# %% wrong: the receive is posted after the computation | wrong | says: issues its irecv
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    mine = compute()
    receiving = dist.irecv(box, (rank - 1) % world_size)
    sending.wait()
    receiving.wait()
    return mine + box


# %% wrong: a blocking receive | wrong | says: call irecv and wait later
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    dist.recv(box, (rank - 1) % world_size)
    mine = compute()
    sending.wait()
    return mine + box


# %% wrong: computes twice | wrong | says: calls compute\(\) 2 times
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(box, (rank - 1) % world_size)]
    compute()
    for work in works:
        work.wait()
    return compute() + box


# %% wrong: nobody waits for the send | wrong | says: never waits for its isend
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    dist.isend(x, (rank + 1) % world_size)
    receiving = dist.irecv(box, (rank - 1) % world_size)
    mine = compute()
    receiving.wait()
    return mine + box


# %% wrong: the last rank sends beyond the end | crashed | says: % world_size
def overlap(rank, world_size, x, compute):
    box = torch.empty_like(x)
    works = [dist.isend(x, rank + 1), dist.irecv(box, rank - 1)]
    mine = compute()
    for work in works:
        work.wait()
    return mine + box


# %% right: with a span of the learner's own around the call
from helpers import span


def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    with span("compute"):
        c = compute()
    for work in works:
        work.wait()
    return c + y


# %% wrong: a buffer of the default dtype | wrong | says: expected tensor.*dtype
def overlap(rank, world_size, x, compute):
    y = torch.empty(x.shape)
    works = [dist.isend(x.float(), (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    mine = compute()
    for work in works:
        work.wait()
    return mine + y.to(x.dtype)


# %% wrong: adds into the tensor that still receives | crashed | says: while it was in flight
def overlap(rank, world_size, x, compute):
    y = torch.zeros_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    y += compute()
    for work in works:
        work.wait()
    return y


# %% wrong: the result is written into the tensor that is still sent | crashed | says: while it was in flight
def overlap(rank, world_size, x, compute):
    y = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % world_size), dist.irecv(y, (rank - 1) % world_size)]
    x.copy_(compute())
    for work in works:
        work.wait()
    return x + y
