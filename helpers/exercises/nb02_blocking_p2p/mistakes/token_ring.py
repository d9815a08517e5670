# %% returns the token after adding
# Return the token as it was received, before the rank is added.
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, world_size - 1)
    else:
        dist.recv(t, rank - 1)
        t += rank
        dist.send(t, (rank + 1) % world_size)
    return t.item()


# %% the token of rank 0 comes home unread
# Rank 0 returns the token that it sent, not the one that came back.
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    back = torch.zeros(1, dtype=torch.int64)
    if rank == 0:
        dist.send(t, 1)
        dist.recv(back, world_size - 1)
        return t.item()
    dist.recv(t, rank - 1)
    dist.send(t + rank, (rank + 1) % world_size)
    return t.item()


# %% the token travels as float32
# A whole number of this size is not exact as float32: send int64, `torch.tensor([token])`.
def token_ring(rank, world_size, token):
    t = torch.tensor([float(token)])
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, world_size - 1)
        return int(t)
    dist.recv(t, rank - 1)
    dist.send(t + rank, (rank + 1) % world_size)
    return int(t)


# %% the token travels as float64
# A whole number of this size is not exact as float64: send int64, `torch.tensor([token])`.
def token_ring(rank, world_size, token):
    t = torch.tensor([token], dtype=torch.float64)
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, world_size - 1)
        return int(t)
    dist.recv(t, rank - 1)
    dist.send(t + rank, (rank + 1) % world_size)
    return int(t)


# %% every rank trusts the token that it was given
# Only rank 0's `token` counts: the others return what they receive.
def token_ring(rank, world_size, token):
    t = torch.tensor([token + rank])
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, world_size - 1)
        return t.item()
    box = torch.empty_like(t)
    dist.recv(box, rank - 1)
    dist.send(box + rank, (rank + 1) % world_size)
    return token + rank * (rank - 1) // 2


# %% adds its rank to the token that it was given
# The rank before has added its rank to its own `token`: it must add to what it received.
def token_ring(rank, world_size, token):
    mine, box = torch.tensor([token + rank]), torch.zeros(1, dtype=torch.int64)
    if rank == 0:
        dist.send(mine, 1)
        dist.recv(box, world_size - 1)
    else:
        dist.recv(box, rank - 1)
        dist.send(mine, (rank + 1) % world_size)
    return box.item()


# %% nobody adds
# Nobody adds: each rank adds its own rank.
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, world_size - 1)
    else:
        dist.recv(t, rank - 1)
        dist.send(t, (rank + 1) % world_size)
    return t.item()
