# %% nothing to receive into | crashed
# Only rank {src} has `x`. The others make a tensor to receive into: `torch.empty(shape, dtype=dtype)`.
def broadcast_from(rank, world_size, x, shape, dtype, src):
    dist.broadcast(x, src=src)
    return x


# %% returns what it was given
# Every rank returns the tensor, also the one that it received into.
def broadcast_from(rank, world_size, x, shape, dtype, src):
    box = x if rank == src else torch.empty(shape, dtype=dtype)
    dist.broadcast(box, src=src)
    return x
