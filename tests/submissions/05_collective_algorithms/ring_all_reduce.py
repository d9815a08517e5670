# %% right: two trips of tensor_split chunks
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
            if trip == 0:
                chunks[into].add_(box)
            else:
                chunks[into].copy_(box)
    return total


# %% right: padded to a multiple, a batch in each step
def ring_all_reduce(rank: int, world_size: int, x: torch.Tensor) -> torch.Tensor:
    size = -(-x.numel() // world_size)
    padded = torch.zeros(size * world_size, dtype=x.dtype)
    padded[: x.numel()] = x
    grid = padded.view(world_size, size)

    def pass_on(index):
        box = torch.empty(size, dtype=x.dtype)
        ops = [
            dist.P2POp(dist.isend, grid[index % world_size], (rank + 1) % world_size),
            dist.P2POp(dist.irecv, box, (rank - 1) % world_size),
        ]
        [work.wait() for work in dist.batch_isend_irecv(ops)]
        return box

    for i in range(world_size - 1):
        grid[(rank - i - 1) % world_size] += pass_on(rank - i)
    for i in range(world_size - 1):
        grid[(rank - i) % world_size] = pass_on(rank - i + 1)
    return padded[: x.numel()]


# %% right: torch.split with a shorter last chunk, irecv before a blocking send, a list of copies
def ring_all_reduce(rank, world_size, x):
    p = world_size
    size = max(1, -(-x.numel() // p))
    parts = [part.clone() for part in torch.split(x, size)]
    parts += [x.new_empty(0)] * (p - len(parts))
    right, left = (rank + 1) % p, (rank + p - 1) % p
    for s in range(2 * (p - 1)):
        shift = 0 if s < p - 1 else 1
        step = s % (p - 1)
        send_at, recv_at = (rank - step + shift) % p, (rank - step - 1 + shift) % p
        incoming = torch.zeros_like(parts[recv_at])
        work = dist.irecv(incoming, left)
        dist.send(parts[send_at], right)
        work.wait()
        parts[recv_at] = incoming if shift else parts[recv_at] + incoming
    return torch.cat(parts)


# %% wrong: an all_reduce | forbidden call | says: only send and recv may be used
def ring_all_reduce(rank, world_size, x):
    total = x.clone()
    dist.all_reduce(total)
    return total


# %% wrong: the whole tensor goes around | wrong | says: bytes in one message
def ring_all_reduce(rank, world_size, x):
    total, box = x.clone(), x.clone()
    for _ in range(world_size - 1):
        work = dist.isend(box, (rank + 1) % world_size)
        theirs = torch.empty_like(x)
        dist.recv(theirs, (rank - 1) % world_size)
        work.wait()
        total += theirs
        box = theirs
    return total


# %% wrong: the sum goes around once, then the result | wrong | says: bytes in one message
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total, box = x.clone(), torch.empty_like(x)
    if rank:
        dist.recv(box, before)
        total += box
    dist.send(total, after)
    if rank == 0:
        dist.recv(total, before)
        if world_size > 2:
            dist.send(total, after)
    elif rank < world_size - 1:
        dist.recv(total, before)
        if rank < world_size - 2:
            dist.send(total, after)
    return total


# %% wrong: rank 0 sends first, the others receive first | wrong | says: all ranks send at once
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.clone()
    chunks = total.tensor_split(world_size)
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            if rank == 0:
                dist.send(chunks[out], after)
                dist.recv(box, before)
            else:
                dist.recv(box, before)
                dist.send(chunks[out], after)
            chunks[into].copy_(chunks[into] + box if trip == 0 else box)
    return total


# %% wrong: one round too many on the second trip | wrong | says: the messages take 3 rounds; 2 are enough
def ring_all_reduce(rank, world_size, x):
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    total = x.clone()
    chunks = total.tensor_split(world_size)
    for trip in range(2):
        for step in range(world_size - 1 + trip):
            out, into = (rank + trip - step) % world_size, (rank + trip - step - 1) % world_size
            box = torch.empty_like(chunks[into])
            work = dist.isend(chunks[out], after)
            dist.recv(box, before)
            work.wait()
            chunks[into].copy_(chunks[into] + box if trip == 0 else box)
    return total


# %% wrong: a ring of the other direction | wrong | says: here it sends only to
def ring_all_reduce(rank, world_size, x):
    after, before = (rank - 1) % world_size, (rank + 1) % world_size
    total = x.clone()
    chunks = total.tensor_split(world_size)
    for trip in range(2):
        for step in range(world_size - 1):
            out, into = (rank - trip + step) % world_size, (rank - trip + step + 1) % world_size
            box = torch.empty_like(chunks[into])
            work = dist.isend(chunks[out], after)
            dist.recv(box, before)
            work.wait()
            chunks[into].copy_(chunks[into] + box if trip == 0 else box)
    return total


# %% wrong: every chunk straight to its owner, not around | wrong | says: here it sends only to
def ring_all_reduce(rank, world_size, x):
    total = x.clone()
    chunks = total.tensor_split(world_size)
    others = [(rank + s) % world_size for s in range(1, world_size)]
    works = [dist.isend(x.tensor_split(world_size)[other], other) for other in others]
    box = torch.empty_like(chunks[rank])
    for other in others:
        dist.recv(box, other)
        chunks[rank].add_(box)
    for work in works:
        work.wait()
    works = [dist.isend(chunks[rank], other) for other in others]
    for other in others:
        dist.recv(chunks[other], other)
    for work in works:
        work.wait()
    return total


# %% wrong: the sum is made in float64 | wrong | says: rank \d sends \d+ bytes; \d+ are enough
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


# %% wrong: everybody sends first | deadlocked | says: Both directions fit
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
