# %% wrong: the whole tensor at once | wrong | says: a chunk of \d+ has at most


# %% wrong: the last, shorter chunk is dropped | wrong | says: Only whole chunks come back


# %% wrong: hands on its own part, not the sum | wrong | says: its own part only


# %% wrong: an all_gather and a sum | wrong | says: only send and recv may be used


# %% wrong: the last rank sends on around the ring | deadlocked | says: rank 0


# %% wrong: receives into the chunk itself | wrong | says: has written over the rank's own
def pipeline_sum(rank, world_size, x, chunk):
    sums = []
    for part in x.split(chunk):
        total = part
        if rank > 0:
            dist.recv(total, rank - 1)
            total = total + part
        if rank < world_size - 1:
            dist.send(total, rank + 1)
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


# %% wrong: returns what came, without its own part | wrong | says: own part is not in it
def pipeline_sum(rank, world_size, x, chunk):
    sums = []
    for part in x.split(chunk):
        before = part.clone()
        total = part
        if rank > 0:
            dist.recv(before, rank - 1)
            total = part + before
        if rank < world_size - 1:
            dist.send(total, rank + 1)
        sums.append(before)
    return torch.cat(sums)
