# %% right: step doubles, numbers counted from the root
def tree_broadcast(rank, world_size, x, src):
    me, step = (rank - src) % world_size, 1
    while step < world_size:
        if me < step:
            if me + step < world_size:
                dist.send(x, (me + step + src) % world_size)
        elif me < 2 * step:
            dist.recv(x, (me - step + src) % world_size)
        step *= 2
    return x


# %% right: binomial tree by masks, the largest subtree first, without waiting
def tree_broadcast(rank: int, world_size: int, x: torch.Tensor, src: int) -> torch.Tensor:
    relative = (dist.get_rank() - src + world_size) % world_size
    mask = 1
    while mask < world_size:
        if relative & mask:
            x = torch.empty_like(x)
            dist.irecv(x, src=(rank - mask) % world_size).wait()
            break
        mask <<= 1
    mask >>= 1
    pending = []
    while mask > 0:
        if relative + mask < world_size:
            pending.append(dist.isend(x, dst=(rank + mask) % world_size))
        mask >>= 1
    for work in pending:
        work.wait()
    return x


# %% right: recursive halving of a list of ranks, no numbers modulo
def halve(ranks, me, x):
    if len(ranks) == 1:
        return
    middle = (len(ranks) + 1) // 2
    left, right = ranks[:middle], ranks[middle:]
    if me == left[0]:
        dist.send(x, right[0])
    elif me == right[0]:
        dist.recv(x, left[0])
    halve(left if me in left else right, me, x)


def tree_broadcast(rank, world_size, x, src):
    out = x.clone()
    halve([src] + [r for r in range(world_size) if r != src], rank, out)
    return out


# %% wrong: the root sends to everybody | wrong | says: rounds; 2 are enough
def tree_broadcast(rank, world_size, x, src):
    if rank == src:
        for other in range(world_size):
            if other != src:
                dist.send(x, other)
    else:
        dist.recv(x, src)
    return x


# %% wrong: the root sends to everybody at once, with isend | wrong | says: rounds; 2 are enough
def tree_broadcast(rank, world_size, x, src):
    if rank == src:
        works = [dist.isend(x, other) for other in range(world_size) if other != src]
        for work in works:
            work.wait()
    else:
        dist.recv(x, src)
    return x


# %% wrong: a chain from rank to rank | wrong | says: let all of them send in each round
def tree_broadcast(rank, world_size, x, src):
    me = (rank - src) % world_size
    if me > 0:
        dist.recv(x, (rank - 1) % world_size)
    if me < world_size - 1:
        dist.send(x, (rank + 1) % world_size)
    return x


# %% wrong: a heap, each rank sends to 2i+1 and 2i+2 | wrong | says: the messages take
def tree_broadcast(rank, world_size, x, src):
    me = (rank - src) % world_size
    if me:
        dist.recv(x, ((me - 1) // 2 + src) % world_size)
    for child in (2 * me + 1, 2 * me + 2):
        if child < world_size:
            dist.send(x, (child + src) % world_size)
    return x


# %% wrong: a round too many, everybody is told twice | wrong | says: Each rank but the root needs it once
def tree_broadcast(rank, world_size, x, src):
    me, step = (rank - src) % world_size, 1
    while step < world_size:
        if me < step:
            if me + step < world_size:
                dist.send(x, (me + step + src) % world_size)
        elif me < 2 * step:
            dist.recv(x, (me - step + src) % world_size)
        step *= 2
    box = x.clone()
    work = dist.isend(x, (rank + 1) % world_size)
    dist.recv(box, (rank - 1) % world_size)
    work.wait()
    return x


# %% wrong: torch's own broadcast | forbidden call | says: only send and recv may be used
def tree_broadcast(rank, world_size, x, src):
    dist.broadcast(x, src)
    return x


# %% wrong: sends, but returns nothing | wrong | says: returns nothing
def tree_broadcast(rank, world_size, x, src):
    me, step = (rank - src) % world_size, 1
    while step < world_size:
        if me < step:
            if me + step < world_size:
                dist.send(x, (me + step + src) % world_size)
        elif me < 2 * step:
            dist.recv(x, (me - step + src) % world_size)
        step *= 2


# %% wrong: nobody waits for what comes | wrong | says: before the `wait\(\)` of its receive returned
def tree_broadcast(rank, world_size, x, src):
    me, step, got = (rank - src) % world_size, 1, x.clone()
    while step < world_size:
        if me < step:
            if me + step < world_size:
                dist.send(got, (me + step + src) % world_size)
        elif me < 2 * step:
            dist.irecv(got, (me - step + src) % world_size)
        step *= 2
    return got


# %% wrong: everybody receives from the root | crashed | says: sends to itself
def tree_broadcast(rank, world_size, x, src):
    dist.recv(x, src)
    for other in range(world_size):
        if other != src and rank == src:
            dist.send(x, other)
    return x
