# %% hands on its own part, not the sum
# Each rank hands on its own part only; hand on the sum so far.
def pipeline_sum(rank, world_size, x, chunk):
    sums = []
    for part in x.split(chunk):
        total = part.clone()
        if rank > 0:
            before = torch.empty_like(part)
            dist.recv(before, rank - 1)
            total += before
        if rank < world_size - 1:
            dist.send(part.contiguous(), rank + 1)
        sums.append(total)
    return torch.cat(sums)


# %% receives into the chunk itself
# This is twice what came from the rank before: `recv` has written over the rank's own chunk. Receive into
# a tensor of its own.
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


# %% returns what came, without its own part
# This is what came from the rank before: the rank's own part is not in it.
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
