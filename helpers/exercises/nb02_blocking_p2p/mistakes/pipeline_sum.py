# %% hands on its own part, not the sum
# Each rank sends its own chunk on. Send the sum so far: what was received plus this rank's own chunk.
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
# This is twice what came from the rank before: `recv` wrote over this rank's own chunk. Receive into a
# separate tensor.
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
# This is what came from the rank before. Add this rank's own part to it.
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


# %% the last, shorter chunk is dropped
# The last, shorter chunk is missing from the result. `x.split(chunk)` includes it.
def pipeline_sum(rank, world_size, x, chunk):
    sums = []
    for i in range(len(x) // chunk):
        total = x[i * chunk : (i + 1) * chunk].clone()
        if rank > 0:
            before = torch.empty_like(total)
            dist.recv(before, rank - 1)
            total += before
        if rank < world_size - 1:
            dist.send(total, rank + 1)
        sums.append(total)
    return torch.cat(sums) if sums else x[:0]


# %% summed and sent as float32
# The sum was computed in float32. Keep the dtype of `x`, in what is sent and in what is returned.
def pipeline_sum(rank, world_size, x, chunk):
    out = x.float().clone()
    for part in out.split(chunk):
        if rank > 0:
            box = torch.empty_like(part)
            dist.recv(box, rank - 1)
            part += box
        if rank + 1 < world_size:
            dist.send(part, rank + 1)
    return out


# %% the last chunk alone
# Only the last chunk comes back. Collect the sums of all chunks and return `torch.cat` of them.
def pipeline_sum(rank, world_size, x, chunk):
    for part in x.split(chunk):
        total = part.clone()
        if rank > 0:
            before = torch.empty_like(part)
            dist.recv(before, rank - 1)
            total += before
        if rank < world_size - 1:
            dist.send(total, rank + 1)
    return total
