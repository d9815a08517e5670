# %% everybody sends first | deadlocked
# Both directions can go in one round: begin your message with `isend`, receive, then `wait()` for what
# you sent.
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.clone()
    chunks = total.tensor_split(world_size)
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            dist.send(chunks[out], after)
            dist.recv(box, before)
            chunks[into].copy_(chunks[into] + box if trip == 0 else box)
    return total


# %% only the first trip
# Each rank has a finished chunk, so the first trip is right. On the second trip the finished chunks go
# around, and what comes in replaces the chunk that is there.
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.clone()
    chunks = total.tensor_split(world_size)
    for step in range(world_size - 1):
        out, into = (rank - step) % world_size, (rank - step - 1) % world_size
        box = torch.empty_like(chunks[into])
        work = dist.isend(chunks[out], after)
        dist.recv(box, before)
        work.wait()
        chunks[into].add_(box)
    return total


# %% adds on the second trip too
# Each rank has a finished chunk, so the first trip is right. On the second trip the finished chunks go
# around, and what comes in replaces the chunk that is there.
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.clone()
    chunks = total.tensor_split(world_size)
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            work = dist.isend(chunks[out], after)
            dist.recv(box, before)
            work.wait()
            chunks[into].add_(box)
    return total


# %% lengths that do not divide lose their end
# The last elements are missing where the length does not divide: `x.tensor_split(world_size)` makes as
# many chunks as there are ranks, which cover all; some may be empty.
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total, size = x.clone(), len(x) // world_size
    chunks = [total[i * size : (i + 1) * size] for i in range(world_size)]
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            work = dist.isend(chunks[out], after)
            dist.recv(box, before)
            work.wait()
            chunks[into].copy_(chunks[into] + box if trip == 0 else box)
    return total


# %% torch.chunk gives too few chunks | crashed
# How many chunks are there? `torch.chunk` and `torch.split` may make fewer than there are ranks;
# `x.tensor_split(world_size)` never does.
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.clone()
    chunks = list(total.chunk(world_size))
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            work = dist.isend(chunks[out], after)
            dist.recv(box, before)
            work.wait()
            chunks[into].copy_(chunks[into] + box if trip == 0 else box)
    return total


# %% works on the tensor that it was given
# The caller still needs what it gave: work on a copy, such as `x.clone()`.
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    chunks = x.tensor_split(world_size)
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            work = dist.isend(chunks[out], after)
            dist.recv(box, before)
            work.wait()
            chunks[into].copy_(chunks[into] + box if trip == 0 else box)
    return x


# %% it sleeps in place of waiting
# This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous
# call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic
# made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it.
def ring_all_reduce(rank, world_size, x):
    import time

    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.clone()
    chunks = total.tensor_split(world_size)
    works = []
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            works.append(dist.irecv(box, before))
            works.append(dist.isend(chunks[out].clone(), after))
            time.sleep(0.05)
            if trip == 0:
                chunks[into].add_(box)
            else:
                chunks[into].copy_(box)
    for work in works:
        work.wait()
    return total
