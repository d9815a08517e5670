# %% nothing to receive into | crashed
# Only rank {src} has `x`. The other ranks need a tensor to receive into: `torch.empty(shape, dtype=dtype)`.
def broadcast_from(rank, world_size, x, shape, dtype, src):
    dist.broadcast(x, src=src)
    return x


# %% returns what it was given
# Only rank {src} returns the tensor; the others return None. Return the tensor into which the rank has
# received.
def broadcast_from(rank, world_size, x, shape, dtype, src):
    box = x if rank == src else torch.empty(shape, dtype=dtype)
    dist.broadcast(box, src=src)
    return x


# %% the box has the default dtype
# The tensor to receive into has torch's default dtype. Make it with the dtype that you were given:
# `torch.empty(shape, dtype=dtype)`.
def broadcast_from(rank, world_size, x, shape, dtype, src):
    box = torch.zeros(shape)
    if rank == src:
        box = x.float()
    dist.broadcast(box, src=src)
    return box
