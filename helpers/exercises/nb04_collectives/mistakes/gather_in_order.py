# %% one part after the other
# The parts stand one after the other, but rank 0 has samples 0, {n}, ...: they must be dealt back like
# cards.
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)] if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    return torch.cat(parts)[:total] if rank == dst else None


# %% the padding stays
# There are more predictions than samples: the last ones are padding.
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)] if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    return torch.stack(parts, dim=1).flatten() if rank == dst else None


# %% the list on every rank | crashed
# The list to gather into is given on rank `dst` only; the others give None.
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)]
    dist.gather(predictions, parts, dst=dst)
    return torch.stack(parts, dim=1).flatten()[:total] if rank == dst else None


# %% one tensor for all parts
# All parts hold the same: `[t] * n` is one tensor, n times. Make one for each rank, in a comprehension.
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions)] * world_size if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    return torch.stack(parts, dim=1).flatten()[:total] if rank == dst else None
