# %% right: chunk by chunk
def pipeline_sum(rank, world_size, x, chunk):
    sums = []
    for part in x.split(chunk):
        total = part.clone()
        if rank > 0:
            before = torch.empty_like(part)
            dist.recv(before, rank - 1)
            total += before
        if rank < world_size - 1:
            dist.send(total, rank + 1)
        sums.append(total)
    return torch.cat(sums)


# %% right: into one result, with indices
def pipeline_sum(rank, world_size, x, chunk):
    out = x.clone()
    last = rank == world_size - 1
    for start in range(0, x.numel(), chunk):
        view = out[start : start + chunk]
        if rank:
            box = torch.zeros(view.numel(), dtype=x.dtype)
            dist.recv(box, src=rank - 1)
            view.add_(box)
        if not last:
            dist.send(view.contiguous(), dst=rank + 1)
    return out


# %% wrong: the whole tensor at once | wrong | says: a chunk of \d+ has at most
def pipeline_sum(rank, world_size, x, chunk):
    total = x.clone()
    if rank > 0:
        before = torch.empty_like(x)
        dist.recv(before, rank - 1)
        total += before
    if rank < world_size - 1:
        dist.send(total, rank + 1)
    return total


# %% wrong: receives all chunks, then sends all | wrong | says: wanted:
def pipeline_sum(rank, world_size, x, chunk):
    parts = [part.clone() for part in x.split(chunk)]
    if rank > 0:
        for part in parts:
            before = torch.empty_like(part)
            dist.recv(before, rank - 1)
            part += before
    if rank < world_size - 1:
        for part in parts:
            dist.send(part, rank + 1)
    return torch.cat(parts)


# %% wrong: an all_gather and a sum | forbidden call | says: only send and recv may be used
def pipeline_sum(rank, world_size, x, chunk):
    everything = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(everything, x)
    return torch.stack(everything[: rank + 1]).sum(0)


# %% wrong: the last rank sends on around the ring | deadlocked | says: A cycle of sends
def pipeline_sum(rank, world_size, x, chunk):
    sums = []
    for part in x.split(chunk):
        total = part.clone()
        if rank > 0:
            before = torch.empty_like(part)
            dist.recv(before, rank - 1)
            total += before
        dist.send(total, (rank + 1) % world_size)
        sums.append(total)
    return torch.cat(sums)


# %% wrong: by way of float32 | wrong | says: bytes of float32
def pipeline_sum(rank, world_size, x, chunk):
    sums = []
    for part in x.float().split(chunk):
        total = part.clone()
        if rank > 0:
            before = torch.empty_like(part)
            dist.recv(before, rank - 1)
            total += before
        if rank < world_size - 1:
            dist.send(total, rank + 1)
        sums.append(total)
    return torch.cat(sums).to(x.dtype)


# %% wrong: every sum by float64 | wrong | says: a chunk of \d+ has at most
def pipeline_sum(rank, world_size, x, chunk):
    sums = []
    for part in x.double().split(chunk):
        total = part.clone()
        if rank > 0:
            before = torch.empty_like(part)
            dist.recv(before, rank - 1)
            total += before
        if rank < world_size - 1:
            dist.send(total, rank + 1)
        sums.append(total)
    return torch.cat(sums).to(x.dtype)
