# %% receives into its own tensor before it is sent
# A rank has its own tensor again: either it returns `x`, or its partner's `recv` has overwritten `x`
# before it was sent. Receive into a tensor of its own, `torch.empty_like(x)`.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    if rank < partner:
        dist.send(x, partner)
        dist.recv(x, partner)
    else:
        dist.recv(x, partner)
        dist.send(x, partner)
    return x


# %% by way of float32
# This is the right value as float32 holds it. Keep the dtype of what you are given.
def exchange_in_pairs(rank, world_size, x):
    partner = rank ^ 1
    if partner >= world_size:
        return x
    mine, theirs = x.float(), torch.empty(x.shape)
    if rank < partner:
        dist.send(mine, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(mine, partner)
    return theirs.to(x.dtype)
