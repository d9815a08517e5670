# %% in the order in which they came
# The blocks are in the order in which they arrived. The rows of rank 0 come first, on every rank.
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, []
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts.append(multiply(rows, weight))
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% the ring turns the other way
# These are the products of all ranks' rows, but some of them are in the place of another rank's. Whose rows
# does this rank have in round i?
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts[(rank + i) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% adds up
# The products are added up. Each is a block of rows of the result: concatenate them in the order of ranks.
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, total = x, 0
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        total = total + multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return total


# %% receives into what it sends | crashed
# A tensor is used while a transfer still reads or writes it. Until wait() has returned, neither change what
# is being sent nor read what is being received: receive into another tensor.
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x.clone(), [None] * world_size
    for i in range(world_size):
        works = []
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(rows, (rank - 1) % world_size)]
        parts[(rank - i) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
    return torch.cat(parts)


# %% the product goes into the place of the rows that come next
# These are the products of all ranks' rows, but some of them are in the place of another rank's. Whose rows
# does this rank have in round i?
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts[(rank - i - 1) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% counted from rank 0
# These are the products of all ranks' rows, but some of them are in the place of another rank's. Whose rows
# does this rank have in round i?
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts[(i - rank) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% a plain recv after the send's wait | deadlocked
# All ranks wait for their send, and none of them receives meanwhile. Start both transfers (isend, irecv)
# before you wait for either.
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        box, give = torch.empty_like(rows), None
        if i < world_size - 1:
            give = dist.isend(rows, (rank + 1) % world_size)
        parts[(rank - i) % world_size] = multiply(rows, weight)
        if give is not None:
            give.wait()
            dist.recv(box, (rank - 1) % world_size)
        rows = box
    return torch.cat(parts)


# %% only its own rows
# These are the products of this rank's own rows only. Multiply the rows of all ranks.
def overlapped_product(rank, world_size, x, weight, multiply):
    return multiply(x, weight)
