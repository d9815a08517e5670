# %% only the first trip
# Each rank has one finished chunk, so the first trip is right. The second trip is missing: it passes the
# finished chunks on to all ranks.
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
# Chunks are added on the second trip as well. On that trip, each chunk that arrives is finished: copy it,
# do not add it.
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
# The last elements are not summed: the length is not a multiple of the world size.
# `x.tensor_split(world_size)` makes one chunk for each rank and covers all elements.
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
# There are fewer chunks than ranks: `torch.chunk` may return fewer than asked for.
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
# `x` was changed, but it must keep its values. Work on a copy: `x.clone()`.
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
# A tensor was added or returned before the `wait()` of its receive returned, so it held no data yet. Wait
# first, then use the tensor.
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


# %% the second trip starts with the wrong chunk
# The second trip starts with the same chunk as the first. After the first trip, rank r has finished chunk
# (r + 1) % world_size: start with that.
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.clone()
    chunks = total.tensor_split(world_size)
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank - step) % world_size, (rank - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            work = dist.isend(chunks[out], after)
            dist.recv(box, before)
            work.wait()
            chunks[into].copy_(chunks[into] + box if trip == 0 else box)
    return total


# %% torch.chunk gives too few chunks, in a tuple | crashed
# There are fewer chunks than ranks: `torch.chunk` may return fewer than asked for. `x.tensor_split(world_size)`
# never does.
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.clone()
    chunks = total.chunk(world_size)
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            work = dist.isend(chunks[out], after)
            dist.recv(box, before)
            work.wait()
            chunks[into].copy_(chunks[into] + box if trip == 0 else box)
    return total
