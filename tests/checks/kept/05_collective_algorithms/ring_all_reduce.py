# %% wrong: the whole tensor goes around | wrong | says: sends \d+ bytes; \d+ are enough


# %% wrong: one round too many on the second trip | wrong | says: the messages take 3 rounds; 2 are enough


# %% wrong: lengths that do not divide lose their end | wrong | says: where the length does not divide


# %% wrong: torch.chunk gives too few chunks | crashed | says: How many chunks are there


# %% wrong: works on the tensor that it was given | wrong | says: has changed `x`


# %% wrong: every chunk straight to its owner, not around | wrong | says: here it sends only to


# %% wrong: the sum is made in float64 | wrong | says: is -?\d+, not -?\d+
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.double().clone()
    chunks = total.tensor_split(world_size)
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            work = dist.isend(chunks[out], after)
            dist.recv(box, before)
            work.wait()
            if trip == 0:
                chunks[into].add_(box)
            else:
                chunks[into].copy_(box)
    return total.to(x.dtype)


# %% wrong: it sleeps in place of waiting | wrong | says: element \[0\] is
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
