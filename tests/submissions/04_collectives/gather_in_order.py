# %% right: stacked as columns
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)] if rank == dst else None
    dist.gather(predictions, parts, dst=dst)
    return torch.stack(parts, dim=1).flatten()[:total] if parts else None


# %% right: written with a stride
def gather_in_order(rank, world_size, predictions, total, dst):
    if rank != dst:
        dist.gather(predictions, dst=dst)
        return
    boxes = list(torch.zeros(world_size, len(predictions), dtype=predictions.dtype))
    dist.gather(predictions, boxes, dst=dst)
    result = torch.empty(world_size * len(predictions), dtype=predictions.dtype)
    for r, box in enumerate(boxes):
        result[r::world_size] = box
    return result[:total]


# %% right: sample by sample
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = []
    if dist.get_rank() == dst:
        parts = [predictions.clone() for _ in range(world_size)]
    work = dist.gather(predictions, parts or None, dst=dst, async_op=True)
    work.wait()
    if not parts:
        return None
    return torch.stack([parts[i % world_size][i // world_size] for i in range(total)])


# %% wrong: all_gather, and the others look away | forbidden call | says: only gather may be used
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)]
    dist.all_gather(parts, predictions)
    return torch.stack(parts, dim=1).flatten()[:total] if rank == dst else None


# %% wrong: always to rank 0 | wrong | says: names rank 0
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)] if rank == 0 else None
    dist.gather(predictions, parts, dst=0)
    return torch.stack(parts, dim=1).flatten()[:total] if rank == 0 else None


# %% wrong: only the destination calls | deadlocked | says: waits? for rank
def gather_in_order(rank, world_size, predictions, total, dst):
    if rank == dst:
        parts = [torch.empty_like(predictions) for _ in range(world_size)]
        dist.gather(predictions, parts, dst=dst)
        return torch.stack(parts, dim=1).flatten()[:total]


# %% wrong: a prediction at a time | wrong | says: once is right
def gather_in_order(rank, world_size, predictions, total, dst):
    found = []
    for prediction in predictions:
        parts = [torch.empty_like(prediction) for _ in range(world_size)] if rank == dst else None
        dist.gather(prediction, parts, dst=dst)
        found += parts or []
    return torch.stack(found)[:total] if rank == dst else None


# %% wrong: the list on every rank | crashed | says: Only rank `dst` passes
def gather_in_order(rank, world_size, predictions, total, dst):
    parts = [torch.empty_like(predictions) for _ in range(world_size)]
    dist.gather(predictions, parts, dst=dst)
    return torch.stack(parts, dim=1).flatten()[:total] if rank == dst else None
