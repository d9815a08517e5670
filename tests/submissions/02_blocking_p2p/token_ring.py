# %% right: rank 0 begins
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    if rank == 0:
        dist.send(t, after)
        dist.recv(t, before)
        return t.item()
    dist.recv(t, before)
    got = t.item()
    dist.send(t + rank, after)
    return got


# %% right: the same order for all ranks, the first message sent without waiting
def token_ring(rank, world_size, token):
    buffer = torch.zeros(1, dtype=torch.int64)
    if rank == 0:
        started = dist.isend(torch.tensor([token]), 1)
    dist.recv(buffer, (rank - 1) % world_size)
    if rank == 0:
        started.wait()
        return int(buffer)
    dist.send(buffer + rank, (rank + 1) % world_size)
    return int(buffer)


# %% wrong: everybody receives first | deadlocked | says: cycle of receives
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    dist.recv(t, (rank - 1) % world_size)
    got = t.item()
    dist.send(t + rank, (rank + 1) % world_size)
    return got


# %% wrong: the ring is never closed | deadlocked | says: waits for rank 0
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    if rank > 0:
        dist.recv(t, rank - 1)
    dist.send(t + rank, (rank + 1) % world_size)
    return t.item()


# %% wrong: computes the values without a message | wrong | says: rank 0 calls send 0 times
def token_ring(rank, world_size, token):
    n = rank or world_size
    return token + n * (n - 1) // 2


# %% wrong: prints instead of returning | wrong | says: prints, but returns nothing
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, world_size - 1)
        print(t.item())
    else:
        dist.recv(t, rank - 1)
        print(t.item())
        dist.send(t + rank, (rank + 1) % world_size)


# %% wrong: a broadcast in place of the ring | forbidden call | says: only send and recv may be used
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    dist.broadcast(t, 0)
    n = rank or world_size
    return t.item() + n * (n - 1) // 2
