# %% returns the token after adding
# This is the token after the rank was added. Return it as it was received.
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
# Rank 0 returns the token that it sent. Return what came back to it.
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
# float32 cannot represent integers of this size exactly. Send an int64: `torch.tensor([token])`.
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
# float64 cannot represent integers of this size exactly. Send an int64: `torch.tensor([token])`.
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
# The ranks from 1 on compute their result from their own `token`. Only rank 0's counts: return what you
# received.
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
# A rank adds its number to its own `token` and sends that. It must add to what it received.
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
# Nobody adds. Each rank from 1 on adds its rank before it sends the token on.
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, world_size - 1)
    else:
        dist.recv(t, rank - 1)
        dist.send(t, (rank + 1) % world_size)
    return t.item()


# %% the ring runs backwards
# The token goes the other way around: each rank sends to `rank - 1`. Send to `(rank + 1) % world_size`.
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    after, before = (rank - 1) % world_size, (rank + 1) % world_size
    if rank == 0:
        dist.send(t, after)
        dist.recv(t, before)
        return t.item()
    dist.recv(t, before)
    got = t.item()
    dist.send(t + rank, after)
    return got


# %% 32 bits are enough | crashed
# int32 is too small: the token may have up to 64 bits. Use int64, which is what `torch.tensor([token])`
# gives.
def token_ring(rank, world_size, token):
    t = torch.tensor([token], dtype=torch.int32)
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, world_size - 1)
        return t.item()
    dist.recv(t, rank - 1)
    dist.send(t + rank, (rank + 1) % world_size)
    return t.item()


# %% adds one in place of the rank
# Each rank adds 1. It has to add its own rank.
def token_ring(rank, world_size, token):
    t = torch.tensor([token])
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, world_size - 1)
        return t.item()
    dist.recv(t, rank - 1)
    dist.send(t + 1, (rank + 1) % world_size)
    return t.item()
