# %% one part after the other
# The parts are one after the other, but rank 0 has samples 0, {n}, ...: take one prediction from each rank
# in turn.
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)] if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    return torch.cat(parts)[:total] if rank == dst else None


# %% the padding stays
# There are more predictions than samples: the last ones are padding. Cut at `total`.
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)] if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    return torch.stack(parts, dim=1).flatten() if rank == dst else None


# %% one tensor for all parts
# All parts are the same tensor: `[t] * n` repeats one tensor n times. Make a separate tensor for each rank.
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions)] * world_size if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    return torch.stack(parts, dim=1).flatten()[:total] if rank == dst else None


# %% the wrong reshape
# The parts are one after the other, but rank 0 has samples 0, {n}, ...: take one prediction from each rank
# in turn.
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)] if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    if rank == dst:
        return torch.stack(parts).reshape(-1, world_size).flatten()[:total]


# %% as float32
# The predictions come back as float32. Keep the dtype of `predictions`.
def gather_in_order(rank, world_size, predictions, total, dst):
    predictions = predictions.float()
    parts = [torch.empty_like(predictions) for _ in range(world_size)] if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    return torch.stack(parts, dim=1).flatten()[:total] if rank == dst else None


# %% returned as a matrix
# The order is right, but the result is a matrix. Flatten it, then cut at `total`.
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)] if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    return torch.stack(parts, dim=1) if rank == dst else None


# %% the padding is not handed in | crashed
# All parts of a `gather` have the same shape. Hand in the padding too, and cut at `total` on rank `dst`.
def gather_in_order(rank, world_size, predictions, total, dst):
    mine = predictions[: len(range(rank, total, world_size))]
    parts = None
    if rank == dst:
        parts = [predictions.new_empty(len(range(r, total, world_size))) for r in range(world_size)]
    dist.gather(mine, parts, dst=dst)
    if rank == dst:
        whole = predictions.new_empty(total)
        for r, part in enumerate(parts):
            whole[r::world_size] = part
        return whole
